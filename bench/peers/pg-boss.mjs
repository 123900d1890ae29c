// pg-boss on PostgreSQL, for main.mjs. It keeps ended jobs, with their output.
import { PgBoss } from "pg-boss";
import pg from "pg";

const name = "bench";

export const settings = {
    shipped: {},
    tuned: [
        { batchSize: 1000, burstWhenBatchFull: true, localConcurrency: 2 },
        { batchSize: 5000, burstWhenBatchFull: true, localConcurrency: 4 },
    ],
    // A notification wakes a worker for one batch; what it leaves waits for the next poll.
    latency: {
        useListenNotify: true,
        batchSize: 100,
        pollingIntervalSeconds: 0.5,
        notifyPollingIntervalSeconds: 0.5,
    },
};

async function query(url, text) {
    const client = new pg.Client({ connectionString: url });
    client.on("notice", () => {});
    await client.connect();
    const result = await client.query(text);
    await client.end();
    return result.rows;
}

async function start(url, options) {
    const boss = new PgBoss({ connectionString: url, ...options });
    boss.on("error", (error) => console.error(error));
    await boss.start();
    return boss;
}

export async function reset(url) {
    await query(url, "SET client_min_messages TO warning; DROP SCHEMA IF EXISTS pgboss CASCADE");
    const boss = await start(url, {});
    await boss.createQueue(name);
    await boss.stop({ graceful: false });
}

export async function openProducer(url) {
    const boss = await start(url, {});
    return {
        add: (payload) => boss.send(name, payload),
        addMany: (payloads) => boss.insert(name, payloads.map((data) => ({ data }))),
        close: () => boss.stop({ graceful: false }),
    };
}

export async function startWorker(url, { useListenNotify = false, ...options }, on) {
    const boss = await start(url, { useListenNotify });
    if (useListenNotify) await boss.updateQueue(name, { notify: true });
    await boss.work(name, options, async (jobs) => on(jobs.map((job) => job.data)));
    return {
        async finish() {
            await boss.offWork(name);
            await boss.stop({ graceful: false });
        },
    };
}

export async function countLeft(url) {
    const rows = await query(url,
        "SELECT count(*)::int AS left FROM pgboss.job"
        + " WHERE state IN ('created', 'retry', 'active')");
    return rows[0].left;
}
