// Large things stay quick and readable: a hundred thousand tasks page by page, a workflow of five
// hundred, a payload and a log that do not fit on a screen, more queues than the figures name.
import { after, afterEach, before, test } from 'node:test';
import * as assert from 'node:assert/strict';
import { openBrowser, openPage, Server, until } from './harness.mjs';

const MANY = 100000;
let server, browser, page;
before(async () => {
    server = await Server.start();
    browser = await openBrowser();
});
after(async () => {
    await browser.close();
    await server.remove();
});
afterEach(async () => page?.done());

test('a hundred thousand tasks are paged without a slow page', async () => {
    for (let at = 0; at < MANY; at += 10000)
        await server.post('/v1/tasks', Array.from({ length: 10000 }, (_, one) => ({ type: 'many',
            queue: 'many', priority: one % 5 })));
    page = await openPage(browser, server, '#/tasks?queue=many');
    await page.getByRole('button', { name: /^Pending 100 k/ }).waitFor();
    const rows = () => page.locator('tbody tr small').allInnerTexts();
    await until(async () => (await rows()).length === 50, 'a page of 50');
    const seen = new Set(await rows());
    const took = [];
    for (let at = 2; at <= 12; at++) {
        const begin = Date.now();
        await page.getByRole('button', { name: 'Next' }).click();
        await page.getByText(`Page ${at}`, { exact: true }).waitFor();
        await until(async () => !seen.has((await rows())[0]), 'other rows');
        (await rows()).forEach((id) => seen.add(id));
        took.push(Date.now() - begin);
    }
    assert.equal(seen.size, 600);
    took.sort((a, b) => a - b); // the machine may be busy for a moment: most of them
    assert.ok(took[7] < 3000, `pages took ${took} ms`);
    await page.getByRole('button', { name: 'Previous' }).click();
    await page.getByText('Page 11', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'First' }).click();
    await page.getByText('Page 1', { exact: true }).waitFor();
});

test('a workflow of five hundred tasks is drawn within seconds and reached by keys', async () => {
    const tasks = [{ type: 'root', name: 'root', ref: 'r' }];
    for (let layer = 0; layer < 6; layer++)
        for (let at = 0; at < 83; at++)
            tasks.push({ type: 'node', name: `n ${layer}.${at}`, ref: `${layer}-${at}`,
                depends_on: layer === 0 ? [{ ref: 'r' }] : [...new Set([at, (at * 7 + 1) % 83])]
                    .map((other) => ({ ref: `${layer - 1}-${other}` })) });
    tasks.push({ type: 'end', name: 'the end', depends_on: [{ ref: '5-0' }, { ref: '5-82' }] });
    await server.post('/v1/tasks', tasks.map((task) => ({ ...task, workflow_id: 'wide', queue: 'wide' })));
    const begin = Date.now();
    page = await openPage(browser, server, '#/workflows/wide');
    await until(async () => await page.locator('.node').count() === tasks.length, 'all nodes');
    assert.ok(Date.now() - begin < 30000, `drawn after ${Date.now() - begin} ms`);
    const overlapping = await page.evaluate(() => {
        const boxes = [...document.querySelectorAll('.node g')].map((node) => node.getAttribute('transform'));
        return boxes.length - new Set(boxes).size;
    });
    assert.equal(overlapping, 0);
    await page.locator('.node[tabindex="0"]').focus();
    const names = new Set();
    for (let at = 0; at < 8; at++) {
        names.add(await page.evaluate(() => document.activeElement.textContent));
        await page.keyboard.press(at % 3 === 2 ? 'ArrowRight' : 'ArrowDown');
        await page.waitForTimeout(50);
    }
    assert.ok(names.size >= 5, [...names].join());
    await page.keyboard.press('+');
    await page.keyboard.press('Enter');
    await page.waitForURL(/#\/tasks\/.+/);
});

test('a long log and a wide payload do not stop the page', async () => {
    const { id } = await server.enqueue('long', { queue: 'long',
        payload: { rows: Array.from({ length: 5000 }, (_, at) => ({ at, text: 'x'.repeat(20) })) } });
    await server.worker('w-long', { queues: ['long'] });
    const [held] = await server.claim('w-long');
    for (let turn = 0; turn < 5; turn++)
        await server.report('w-long', ...Array.from({ length: 800 }, (_, at) => [held, 'log',
            { level: 'INFO', message: `line ${turn * 800 + at}` }]));
    page = await openPage(browser, server, `#/tasks/${id}?tab=logs`);
    await page.getByText('line 3999', { exact: true }).waitFor();
    await page.getByText('older lines are not shown', { exact: false }).waitFor();
    await page.getByRole('tab', { name: /Payload/ }).click();
    await page.locator('summary', { hasText: '5,000' }).waitFor();
    await page.getByRole('button', { name: '4,900 more' }).click();
    await until(async () => await page.locator('.json-branch').count() > 1000, 'more of them');
});

test('with more queues than the figures name, that is said, and no count is wrong', async () => {
    await server.post('/v1/tasks', Array.from({ length: 1001 }, (_, at) => ({ type: 'apart',
        queue: `apart-${at}` })));
    assert.equal((await server.get('/v1/stats')).cut, true);
    page = await openPage(browser, server, '#/');
    await page.getByText('Not all queues and types are shown here').waitFor();
    await page.evaluate(() => { location.hash = '#/tasks'; });
    const chips = page.locator('.chip .count');
    await until(async () => await chips.count() === 1 + Object.values((await server.get('/v1/stats')).counts)
        .filter((count) => count > 0).length, 'a count of each status there is'); // leases end meanwhile
    await page.evaluate(() => { location.hash = '#/tasks?queue=apart-1000'; });
    await until(async () => await page.locator('tbody tr').count() === 1, 'its only task');
    await until(async () => await chips.count() === 0, 'no count that may be wrong');
});
