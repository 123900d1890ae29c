// graphile-worker on PostgreSQL, for main.mjs. It deletes a job when it is done: no history.
import { Logger, makeWorkerUtils, run, WorkerPreset } from "graphile-worker";
import pg from "pg";

const quiet = new Logger(() => () => {}); // as shipped it prints a line for every job

const batching = { concurrentJobs: 24, maxPoolSize: 25, completeJobBatchDelay: 0 };

export const settings = {
    shipped: {},
    tuned: [
        // Those its documentation measures with, and a longer queue for jobs that take no time.
        { ...batching, localQueue: { size: 500 } },
        { ...batching, localQueue: { size: 5000 } },
    ],
    latency: {},
};

async function query(url, text) {
    const client = new pg.Client({ connectionString: url });
    client.on("notice", () => {});
    await client.connect();
    const result = await client.query(text);
    await client.end();
    return result.rows;
}

export async function reset(url) {
    await query(url, "SET client_min_messages TO warning;"
        + " DROP SCHEMA IF EXISTS graphile_worker CASCADE");
    const utils = await makeWorkerUtils({ connectionString: url, logger: quiet });
    await utils.migrate();
    await utils.release();
}

export async function openProducer(url) {
    const utils = await makeWorkerUtils({ connectionString: url, logger: quiet });
    return {
        add: (payload) => utils.addJob("noop", payload),
        addMany: (payloads) =>
            utils.addJobs(payloads.map((payload) => ({ identifier: "noop", payload }))),
        close: () => utils.release(),
    };
}

export async function startWorker(url, options, on) {
    const runner = await run({
        preset: {
            extends: [WorkerPreset],
            worker: { connectionString: url, logger: quiet, ...options },
        },
        noHandleSignals: true,
        crontab: "",
        taskList: { noop: async (payload) => on([payload]) },
    });
    return { finish: () => runner.stop() };
}

export async function countLeft(url) {
    const rows = await query(url, "SELECT count(*)::int AS left FROM graphile_worker.jobs");
    return rows[0].left;
}
