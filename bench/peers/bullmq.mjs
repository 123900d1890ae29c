// BullMQ on Redis, for main.mjs. How durable it is, Redis decides (appendfsync).
import { Queue, Worker } from "bullmq";
import { Redis } from "ioredis";

const name = "bench";

export const settings = {
    shipped: {},
    tuned: [{ concurrency: 10 }, { concurrency: 50 }],
    latency: {},
};

const connect = (url) => new Redis(url, { maxRetriesPerRequest: null });

export async function reset(url) {
    const redis = connect(url);
    await redis.flushall();
    redis.disconnect();
}

export async function openProducer(url) {
    const connection = connect(url);
    const queue = new Queue(name, { connection });
    await queue.waitUntilReady();
    return {
        add: (payload) => queue.add("noop", payload),
        addMany: (payloads) => queue.addBulk(payloads.map((data) => ({ name: "noop", data }))),
        async close() {
            await queue.close();
            connection.disconnect();
        },
    };
}

export async function startWorker(url, options, on) {
    const connection = connect(url);
    const worker = new Worker(name, async (job) => on([job.data]), { connection, ...options });
    worker.on("error", (error) => console.error(error));
    await worker.waitUntilReady();
    return {
        async finish() {
            await worker.close();
            connection.disconnect();
        },
    };
}

export async function countLeft(url) {
    const connection = connect(url);
    const queue = new Queue(name, { connection });
    const counts = await queue.getJobCounts("waiting", "active", "failed", "delayed");
    await queue.close();
    connection.disconnect();
    return Object.values(counts).reduce((sum, count) => sum + count, 0);
}
