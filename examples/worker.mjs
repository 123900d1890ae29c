#!/usr/bin/env node
// A worker over plain HTTP with Node 20's fetch, no packages: register, claim, heartbeat, report.
//     perdura serve &
//     node worker.mjs [http://127.0.0.1:7070]
//     perdura enqueue example:http --payload '{"n":3}' --wait
// PERDURA_TOKEN is sent if it is set. Ctrl-C or SIGTERM gives unfinished tasks back and
// leaves.
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";

const server = (process.argv[2] ?? "http://127.0.0.1:7070").replace(/\/+$/, "");
const types = ["example:http"];
const held = new Map(); // task id -> lease token
const stopped = new Set(); // cancelled, paused or lost: work on them no more
let path, heartbeatMs;

async function call(method, where, body, timeoutMs = 30000) {
  const headers = { "Content-Type": "application/json" };
  if (process.env.PERDURA_TOKEN) headers.Authorization = `Bearer ${process.env.PERDURA_TOKEN}`;
  const reply = await fetch(server + where, {
    method,
    headers,
    body: body === undefined ? undefined : JSON.stringify(body),
    signal: AbortSignal.timeout(timeoutMs),
  });
  const text = await reply.text();
  if (!reply.ok) throw Object.assign(new Error(`${reply.status} ${text}`), { status: reply.status });
  return text ? JSON.parse(text) : null;
}

async function register() {
  const me = { hostname: hostname(), pool_size: 1, queues: ["default"], types };
  const reply = await call("POST", "/v1/workers", me);
  path = `/v1/workers/${encodeURIComponent(reply.id)}`;
  heartbeatMs = reply.heartbeat_ms;
}

// Registers again with a server that forgot us (404); retries one that is away.
async function patiently(action) {
  for (;;) {
    try {
      return await action();
    } catch (error) {
      if (error.status === 404) await register().catch(() => {});
      else if (error.status && error.status < 500) throw error;
      await sleep(1000);
    }
  }
}

// Renews the leases of all tasks at hand; hears which of them to stop.
async function keepAlive() {
  for (;;) {
    await sleep(heartbeatMs);
    const tasks = [...held].map(([task_id, lease_token]) => ({ task_id, lease_token }));
    const reply = await patiently(() => call("POST", `${path}:heartbeat`, { tasks }));
    for (const id of [...reply.cancel, ...reply.pause, ...reply.lost]) stopped.add(id);
  }
}

// In order and durable when it returns; repeating one is harmless because of its seq.
async function report(task, ...elements) {
  for (const element of elements) {
    task.seq = (task.seq ?? 0) + 1;
    Object.assign(element, { task_id: task.id, lease_token: task.lease_token, seq: task.seq });
  }
  const { items } = await patiently(() => call("POST", `${path}:report`, elements));
  if (items.some((item) => !item.ok || item.cancel || item.pause)) stopped.add(task.id);
}

// The work itself: counts up to payload.n, with a checkpoint after each step.
async function work(task) {
  const count = task.payload?.n ?? 3;
  let done = task.checkpoint?.data ?? 0;
  while (done < count) {
    if (stopped.has(task.id)) return { op: "release" };
    await sleep(200);
    done += 1;
    const progress = Math.floor((done * 100) / count);
    await report(
      task,
      { op: "progress", progress, state: `Step ${done}` },
      { op: "checkpoint", name: `step-${done}`, progress, data: done },
    );
  }
  return { op: "complete", result: { counted: done } };
}

async function run(task) {
  held.set(task.id, task.lease_token);
  const outcome = await work(task).catch((error) => ({ op: "fail", error: String(error) }));
  await report(task, outcome);
  held.delete(task.id);
  stopped.delete(task.id);
}

await register();
for (const signal of ["SIGINT", "SIGTERM"])
  process.on(signal, async () => {
    await call("DELETE", path).catch(() => {});
    process.exit(0);
  });
keepAlive();
for (;;) {
  const wanted = { queues: ["default"], types, max: 1, wait_ms: 30000 };
  const { tasks } = await patiently(() => call("POST", `${path}:claim`, wanted, 40000));
  for (const task of tasks) await run(task);
}
