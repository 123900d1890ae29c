// The page of target services (D10, D14): how they are, by mouse and by keyboard, while one goes down
// and comes back.
import { after, afterEach, before, test } from 'node:test';
import * as assert from 'node:assert/strict';
import * as fs from 'node:fs';
import * as http from 'node:http';
import * as os from 'node:os';
import * as path from 'node:path';
import { axe, openBrowser, openPage, Server, until } from './harness.mjs';

let server, browser, page, target, folder, broken = false;
before(async () => {
    target = http.createServer((request, reply) => {
        request.resume();
        request.on('end', () => {
            reply.writeHead(broken ? 500 : 200, { 'Content-Type': 'application/json' });
            reply.end(JSON.stringify(broken ? { message: 'the disk is full' } : { ok: true }));
        });
    });
    await new Promise((resolve) => target.listen(0, '127.0.0.1', resolve));
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'perdura-services-'));
    const config = path.join(folder, 'p.yaml');
    fs.writeFileSync(config, `services:
  - name: orders
    url: http://127.0.0.1:${target.address().port}
    breaker: {failures: 2, open: 500ms}
    concurrency: 4
`, { mode: 0o600 });
    server = await Server.start({ arguments: ['--config', config] });
    browser = await openBrowser();
});
after(async () => {
    await browser.close();
    await server.remove();
    target.close();
    target.closeAllConnections();
    fs.rmSync(folder, { recursive: true });
});
afterEach(async () => page?.done());

const ended = (task) => until(async () => ['completed', 'failed', 'dead_letter']
    .includes((await server.get(`/v1/tasks/${task.id}`)).status), 'the end of the task');
const card = () => page.getByRole('article', { name: 'orders' });

test('D14 the page of services shows how they are, also to those without a mouse', async () => {
    await ended(await server.enqueue('service:orders/Charge'));
    page = await openPage(browser, server, '#/');
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.getByRole('link', { name: 'Services' }).click();
    await page.getByRole('heading', { name: 'Services', level: 1 }).waitFor();
    await card().getByText('up', { exact: true }).waitFor();
    await card().getByText('1 done, 0 failed').waitFor();
    assert.ok(await card().getByText('100 %').count() >= 2);
    assert.deepEqual(await axe(page), []);
    await page.keyboard.press('g');
    await page.keyboard.press('o');
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
    await page.keyboard.press('g');
    await page.keyboard.press('v');
    await page.getByRole('heading', { name: 'Services', level: 1 }).waitFor();
    await card().waitFor();
});

test('D10 a service that fails is seen at once, and when it is well again', async () => {
    broken = true;
    const waiting = [];
    for (let i = 0; i < 3; i++)
        waiting.push(await server.enqueue('service:orders/Charge', { max_retries: 50, retry_delay_ms: 100,
            retry_policy: 'fixed' }));
    page = await openPage(browser, server, '#/services');
    await card().getByText('breaker open').waitFor();
    await card().getByText('down', { exact: true }).waitFor();
    await card().getByText(/Down since .* the next call is tried at/).waitFor();
    await card().getByText('answered with status 500', { exact: false }).waitFor();
    assert.equal(await card().getByText('the disk is full').count(), 0); // it may be about people
    assert.deepEqual(await axe(page), []);
    broken = false;
    for (const task of waiting)
        await ended(task);
    await card().getByText('breaker open').waitFor({ state: 'detached' });
    await card().getByText('up', { exact: true }).waitFor();
});
