#!/usr/bin/env node
// A process handler in JavaScript, no packages (Node 20).
//     perdura serve --config perdura.yaml
//     perdura enqueue example:mjs --payload '{"count":5}' --wait
import { readFileSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const tell = (message) => writeSync(3, JSON.stringify(message) + "\n");

process.on("SIGTERM", () => process.exit(75)); // continue later, from the last checkpoint

const task = JSON.parse(readFileSync(0, "utf8")); // one line: the task with its checkpoint
const count = task.payload?.count ?? 5;
let done = task.checkpoint?.data?.done ?? 0; // what earlier attempts have done
console.log(`attempt ${task.attempt}, ${done} of ${count} are done`); // an INFO log

while (done < count) {
  await sleep(200); // the work
  done += 1;
  const progress = Math.floor((done * 100) / count);
  tell({ progress, state: `Step ${done}` });
  tell({ checkpoint: { name: `step-${done}`, progress, data: { done } } });
}
tell({ result: { done } });
