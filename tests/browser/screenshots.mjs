// Pictures of the dashboard: node screenshots.mjs FOLDER [SECONDS]
// A server is kept busy for so many seconds (default 60) before they are taken, so that there is
// something to see. `make screenshots` runs this for docs/images.
import * as fs from 'node:fs';
import * as path from 'node:path';
import { openBrowser, openPage, Server } from './harness.mjs';
import { addBacklog, addPlans, addStory, addWorkflow, work } from './busy.mjs';

const folder = process.argv[2] ?? 'docs/images';
const seconds = Number(process.argv[3] ?? 60);

const server = await Server.start();
const browser = await openBrowser();
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
    const busy = await work(server, { rate: 30 });
    const beats = setInterval(() => ['worker-gpu', 'worker-etl', ...busy.workers].forEach((id) => server
        .post(`/v1/workers/${id}:heartbeat`).catch(() => {})), 5000);
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000));

    fs.mkdirSync(folder, { recursive: true });
    const shots = [['overview', '#/'], ['tasks', '#/tasks'], ['task', `#/tasks/${held.id}`],
        ['task-log', `#/tasks/${held.id}?tab=logs`], ['workflow', '#/workflows/nightly-etl'],
        ['schedules', '#/schedules'], ['workers', '#/workers'], ['queues', '#/queues'], ['jobs', '#/jobs'],
        ['recovery', '#/recovery?tab=dead']];
    for (const colorScheme of ['light', 'dark'])
        for (const [name, hash] of shots) {
            const page = await openPage(browser, server, hash, { colorScheme,
                viewport: { width: 1360, height: 900 } });
            await page.waitForSelector('.page');
            await page.waitForTimeout(name === 'overview' ? 3500 : 900);
            await page.screenshot({ path: path.join(folder, `${name}-${colorScheme}.png`) });
            await page.done();
        }
    for (const [name, hash] of shots.slice(0, 5)) {
        const page = await openPage(browser, server, hash, { viewport: { width: 390, height: 844 } });
        await page.waitForSelector('.page');
        await page.waitForTimeout(1200);
        await page.screenshot({ path: path.join(folder, `${name}-phone.png`) });
        await page.done();
    }
    clearInterval(beats);
    await busy.stop();
    console.log(`${tasks.length} tasks in the workflow; pictures are in ${folder}`);
} finally {
    await browser.close();
    await server.remove();
}
