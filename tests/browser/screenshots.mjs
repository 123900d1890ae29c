// Pictures of the dashboard: node screenshots.mjs FOLDER [SECONDS]
// A server is kept busy for so many seconds (default 60) before they are taken, so that there is
// something to see. `make screenshots` runs this for docs/images.
import * as fs from 'node:fs';
import * as path from 'node:path';
import { openBrowser, openPage, Server } from './harness.mjs';
import { addBacklog, addDeadLetters, addPlans, addStory, addWorkflow, work } from './busy.mjs';

const folder = process.argv[2] ?? 'docs/images';
const seconds = Number(process.argv[3] ?? 60);

const server = await Server.start();
const browser = await openBrowser();
let busy, beats;
try {
    const { held } = await addStory(server);
    await addBacklog(server, 60);
    await addPlans(server);
    const tasks = await addWorkflow(server, 'nightly-etl');
    await server.worker('worker-etl', { hostname: 'etl-1.example.org', pool_size: 6, queues: ['etl'] });
    const first = await server.claim('worker-etl', 2);
    await server.report('worker-etl', ...first.map((task) => [task, 'complete', { result: { rows: 5120 } }]));
    const parts = await server.claim('worker-etl', 6);
    await server.report('worker-etl', ...parts.slice(0, 3).map((task) => [task, 'complete', {}]),
        ...parts.slice(3, 5).map((task, at) => [task, 'progress', { progress: 35 + at * 30 }]));
    const waits = await server.enqueue('contract:sign', { name: 'sign the contract', queue: 'signing' });
    busy = await work(server, { rate: 30 });
    beats = setInterval(() => ['worker-gpu', 'worker-etl', ...busy.workers].forEach((id) => server
        .post(`/v1/workers/${id}:heartbeat`).catch(() => {})), 5000);
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000));

    fs.mkdirSync(folder, { recursive: true });
    const task = `#/tasks/${held.id}`;
    const shots = [['overview-light', '#/'], ['overview-dark', '#/'], ['tasks-light', '#/tasks'],
        ['task-dark', task], ['log-light', `${task}?tab=logs`], ['workflow-dark', '#/workflows/nightly-etl'],
        ['why-light', `#/tasks/${waits.id}`], ['schedules-light', '#/schedules'], ['workers-light', '#/workers'],
        ['overview-phone', '#/'], ['task-phone', task], ['recovery-dark', '#/recovery?tab=dead']];
    for (const [name, hash] of shots) {
        if (name === 'recovery-dark')
            await addDeadLetters(server); // last: they would be an alert on the overview
        const page = await openPage(browser, server, hash, { colorScheme: name.endsWith('dark') ? 'dark'
            : 'light', viewport: name.endsWith('phone') ? { width: 390, height: 844 }
            : { width: 1280, height: 860 } });
        await page.waitForSelector('.page h1');
        await page.waitForTimeout(/^#\/(tasks)?$/.test(hash) ? 3500 : 1200); // a few seconds of live figures
        await page.screenshot({ path: path.join(folder, `${name}.png`) });
        await page.done();
    }
    console.log(`${tasks.length} tasks in the workflow; pictures are in ${folder}`);
} finally {
    clearInterval(beats);
    await busy?.stop();
    await browser.close();
    await server.remove();
}
