// Runs one step of the bench against one Node peer and prints its outcome as one line of JSON.
// Usage: node main.mjs PEER URL STEP PARAMETERS, the last a JSON object; bench/peers.py calls it.
// Every peer is a module beside this file with the same few functions:
//   settings                        a worker's settings as shipped, a list of fast ones, and those
//                                   for low latency
//   reset(url)                      empties the server
//   openProducer(url)               { add(payload), addMany(payloads), close() }
//   startWorker(url, settings, on)  calls on(payloads) when a handler is entered; { finish() }
//                                   takes no more jobs and waits until its last is acknowledged
//   countLeft(url)                  jobs that are waiting or running
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";

const [peerName, url, step, parametersText] = process.argv.slice(2);
const peer = await import(`./${peerName}.mjs`);

// 107 bytes as JSON, the same in every peer.
const payload = {
    to: "user@example.com",
    subject: "hello",
    body: "some text that is about as long as these are in queues",
};

const nowMs = () => Number(process.hrtime.bigint()) / 1e6; // CLOCK_MONOTONIC: one for all processes

// Jobs per second of `inFlight` callers, each of which waits for its own calls.
async function enqueueFor(producer, { seconds, inFlight, batch }) {
    const payloads = Array(batch).fill(payload);
    const start = nowMs();
    const end = start + seconds * 1000;
    let jobs = 0;
    const call = async () => {
        while (nowMs() < end) {
            if (batch === 1) await producer.add(payload);
            else await producer.addMany(payloads);
            jobs += batch;
        }
    };
    await Promise.all(Array.from({ length: inFlight }, call));
    return jobs / ((nowMs() - start) / 1000);
}

// A list of ways to enqueue, each on an empty server; the first turn only warms up.
async function enqueue({ ways, warmUpSeconds }) {
    const rates = [];
    for (const [index, way] of [{ ...ways[0], seconds: warmUpSeconds }, ...ways].entries()) {
        await peer.reset(url);
        const producer = await peer.openProducer(url);
        const rate = await enqueueFor(producer, way);
        await producer.close();
        if (index > 0) rates.push(rate);
    }
    return { rates };
}

async function fill({ jobs, batch }) {
    await peer.reset(url);
    const producer = await peer.openProducer(url);
    for (let done = 0; done < jobs; done += batch)
        await producer.addMany(Array(Math.min(batch, jobs - done)).fill(payload));
    await producer.close();
    return { jobs };
}

// Works off what is waiting, for `seconds` at most. The time is that from the first entry of a
// handler until the last job is acknowledged. A worker that sleeps between jobs has run only a
// handful: there, what counts is the time between the first entry and the last.
async function drain({ jobs, seconds, settings }) {
    let first = 0, last = 0, before = 0, total = 0;
    let drained;
    const end = new Promise((resolve) => (drained = resolve));
    const worker = await peer.startWorker(url, settings, (payloads) => {
        last = nowMs();
        first ||= last;
        before = total;
        total += payloads.length;
        if (total >= jobs) drained();
    });
    const timer = setTimeout(drained, seconds * 1000);
    await end;
    clearTimeout(timer);
    await worker.finish();
    const finished = nowMs();
    const left = await peer.countLeft(url);
    if (total + left < jobs) throw new Error(`${jobs} jobs, ${total} ran and ${left} are left`);
    const rate = total < 100 ? before / (last - first) : (jobs - left) / (finished - first);
    return { rate: rate * 1000, total };
}

// Time from the call that enqueues to the entry of the handler, the producer in its own process.
async function latency({ perSecond, jobs, seconds, settings }) {
    await peer.reset(url);
    const times = [];
    let received;
    const end = new Promise((resolve) => (received = resolve));
    const worker = await peer.startWorker(url, settings, (payloads) => {
        const now = nowMs();
        for (const each of payloads) times.push(now - each.sentMs);
        if (times.length >= jobs) received();
    });
    const parameters = JSON.stringify({ perSecond, jobs });
    const producer = fork(fileURLToPath(import.meta.url), [peerName, url, "produce", parameters]);
    const produced = new Promise((resolve) => producer.on("exit", resolve));
    const timer = setTimeout(received, seconds * 1000);
    await end;
    clearTimeout(timer);
    producer.kill();
    await produced;
    await worker.finish();
    while (times.length < jobs) times.push(seconds * 1000); // those that never came
    times.splice(0, Math.floor(jobs / 10)); // the first are those of programs that warm up
    times.sort((a, b) => a - b);
    const at = (part) => times[Math.min(times.length - 1, Math.floor(part * times.length))];
    return { p50_ms: at(0.5), p99_ms: at(0.99) };
}

async function produce({ perSecond, jobs }) {
    const producer = await peer.openProducer(url);
    const start = nowMs();
    const calls = [];
    for (let i = 0; i < jobs; i++) {
        const wait = start + (i * 1000) / perSecond - nowMs();
        if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
        calls.push(producer.add({ to: payload.to, body: payload.body, sentMs: nowMs() }));
    }
    await Promise.all(calls);
    await producer.close();
    return {};
}

const steps = { enqueue, fill, drain, latency, produce };
const outcome = await steps[step](JSON.parse(parametersText));
if (step !== "produce") console.log(JSON.stringify({ ...outcome, settings: peer.settings }));
process.exit(0);
