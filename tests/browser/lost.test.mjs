// What the dashboard says of tasks that lost their worker or failed for good: why they are not
// recovered, how often they were tried, how long they ran; and that what it says stays with what it
// is about.
import { after, afterEach, before, test } from 'node:test';
import * as assert from 'node:assert/strict';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { openBrowser, openPage, Server, until } from './harness.mjs';

const CONFIG = `workers: 0
handlers:
  - type: "closed"
    command: ["true"]
    validate: {command: ["sh", "-c", "echo 'order 7 is closed'; exit 1"]}
  - type: "silent"
    command: ["true"]
    validate: {url: "http://127.0.0.1:1/nobody-listens-here"}
`;

let folder, server, browser, page;
before(async () => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'perdura-lost-'));
    fs.writeFileSync(path.join(folder, 'perdura.yaml'), CONFIG);
    server = await Server.start({ arguments: ['--config', path.join(folder, 'perdura.yaml'), '--lease', '3s'] });
    browser = await openBrowser();
});
after(async () => {
    await browser.close();
    await server.remove();
    fs.rmSync(folder, { recursive: true, force: true });
});
afterEach(async () => page?.done());

const open = async (hash, options) => { page = await openPage(browser, server, hash, options); };
const button = (name, inside = page) => inside.getByRole('button', { name, exact: true });
const fact = (term) => page.locator('.facts > div', { has: page.getByText(term, { exact: true }) }).locator('dd');
const goTo = (hash) => page.evaluate((to) => { location.hash = to; }, hash);

// A task whose worker stays silent until its lease is over.
async function lost(type, fields = {}) {
    const { id } = await server.enqueue(type, { queue: `q-${type}`, name: `${type} order`, ...fields });
    await server.worker(`w-${type}`, { queues: [`q-${type}`] });
    const [held] = await server.claim(`w-${type}`);
    await server.report(`w-${type}`, [held, 'start', {}]);
    await until(async () => (await server.get(`/v1/tasks/${id}`)).status === 'orphaned', 'the loss');
    return id;
}

const entryOf = async (id, fits) => until(async () => (await server.get(`/v1/recovery?task_id=${id}`))
    .items.find(fits), 'its recovery');

test('a refused task says why instead of that it waits, and its clock stops (B6)', async () => {
    const id = await lost('closed');
    const entry = await entryOf(id, (one) => one.status === 'failed');
    assert.equal(entry.max_attempts, 0);
    await open(`#/tasks/${id}`);
    const why = page.getByRole('region', { name: 'Why is it not running?' });
    await why.getByText('could not be recovered: order 7 is closed').waitFor();
    assert.equal(await why.getByText('is waiting for recovery').count(), 0);
    await fact('Started').waitFor();
    assert.equal(await fact('Duration').count(), 0);
    await goTo('#/tasks?queue=q-closed');
    const cells = page.locator('tr', { hasText: 'closed order' }).locator('td');
    await until(async () => (await cells.allInnerTexts()).at(-2) === '–', 'no duration in the list');
    await goTo('#/recovery');
    await page.getByRole('tab', { name: 'Not recovered yet' }).waitFor();
    const row = page.locator('tr', { hasText: id });
    await row.getByText('lost its worker').waitFor();
    await row.getByText('Refused: order 7 is closed').waitFor();
    await page.getByRole('tab', { name: 'Recovery queue' }).click();
    await row.getByText('order 7 is closed').waitFor();
    assert.equal(await row.locator('[data-label=Attempts]').innerText(), String(entry.attempts));
});

test('a task whose recovery is tried again says so, and what became of the last try (B6)', async () => {
    const id = await lost('silent');
    await entryOf(id, (one) => one.status === 'pending' && one.error_message);
    await open(`#/tasks/${id}`);
    const why = page.getByRole('region', { name: 'Why is it not running?' });
    await why.getByText('Perdura will try to recover it again; the last try failed:').waitFor();
    await goTo('#/recovery');
    await page.locator('tr', { hasText: id }).getByText('lost its worker').waitFor();
    assert.equal(await page.locator('tr', { hasText: id }).getByText('Refused').count(), 0);
});

test('a dead letter counts its failures, and a retry was not made by the schedule', async () => {
    const { id } = await server.enqueue('fails', { queue: 'dead', max_retries: 1, retry_delay_ms: 10 });
    await server.worker('w-dead', { queues: ['dead'] });
    for (let failures = 0; failures < 2; failures++) {
        const [held] = await until(async () => {
            const tasks = await server.claim('w-dead');
            return tasks.length ? tasks : null;
        }, 'the next attempt');
        await server.report('w-dead', [held, 'start', {}], [held, 'log', { level: 'ERROR', message: 'bad' }],
            [held, 'log', { level: 'FATAL', message: 'the worst' }], [held, 'fail', { error: 'no' }]);
    }
    await open(`#/tasks/${id}`);
    await until(async () => await fact('Attempts').innerText() === '2 (failures 2 of 2)', 'its failures');
    await page.locator('.timeline').getByText('by the scheduler').first().waitFor();
    await page.getByRole('tab', { name: 'Log' }).click();
    await until(async () => await page.locator('.log').count() === 4, 'all lines');
    await page.getByLabel('Minimum level').selectOption('FATAL');
    await until(async () => (await page.locator('.log span').allInnerTexts()).join() === 'the worst,the worst',
        'the worst lines only');
});

test('a notice names its task and stays with its page; one that leads on comes along', async () => {
    const { id } = await server.enqueue('told', { queue: 'told', name: 'told of', delay_ms: 3600000 });
    await open(`#/tasks/${id}`);
    await page.evaluate(() => { // so that none goes by itself
        const real = window.setTimeout;
        window.setTimeout = (call, ms, ...rest) => (ms === 5000 ? 0 : real(call, ms, ...rest));
    });
    await button('Pause').click();
    await page.getByText('Paused: told of').waitFor();
    await goTo('#/queues');
    await page.getByRole('heading', { name: 'Queues' }).waitFor();
    await until(async () => await page.locator('.notice').count() === 0, 'it is gone');
    await server.post(`/v1/tasks/${id}:cancel`);
    await goTo(`#/tasks/${id}`);
    await button('Delete').click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByRole('heading', { name: 'Tasks' }).waitFor();
    await page.getByText('Deleted: told of').waitFor();
});

test('every cell of the calendar stands in the row of its day and the column of its hour', async () => {
    const job = await server.post('/v1/jobs', { name: 'nightly' });
    await server.post(`/v1/jobs/${job.id}/schedules`, { cron_expression: '30 2 * * *',
        timezone: 'Asia/Kolkata' });
    await open('#/schedules', { timezoneId: 'Asia/Kolkata' }); // half an hour off, the clocks never change
    await page.locator('.heats .heat-1').first().waitFor();
    const cells = await page.locator('.heats tbody tr').evaluateAll((rows) => rows.flatMap((row) =>
        [...row.cells].slice(1).map((cell, hour) => ({ hour, day: row.cells[0].innerText.slice(0, 3),
            label: cell.querySelector('.heat')?.getAttribute('aria-label') }))).filter((one) => one.label));
    assert.equal(cells.length, 7 * 24);
    for (const { hour, day, label } of cells) {
        assert.ok(label.startsWith(day), `${label} in the row ${day}`);
        assert.match(label, new RegExp(` ${String(hour).padStart(2, '0')}:00`));
    }
    const fires = cells.filter((one) => !one.label.endsWith('fires 0 times'));
    assert.ok(fires.length === 7 || fires.length === 6); // this hour's may be over
    assert.ok(fires.every((one) => one.hour === 2));
});
