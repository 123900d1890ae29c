// For every user: with the keyboard alone, with a screen reader (axe-core finds nothing serious, in
// light and dark), on a phone.
import { after, before, test } from 'node:test';
import * as assert from 'node:assert/strict';
import { axe, openBrowser, openPage, Server, until } from './harness.mjs';
import { addBacklog, addPlans, addStory, addWorkflow } from './busy.mjs';

let server, browser, story;
before(async () => {
    server = await Server.start();
    browser = await openBrowser();
    story = await addStory(server);
    await addBacklog(server, 20);
    await addPlans(server);
    await addWorkflow(server, 'etl');
    await server.post('/v1/queues/media:pause');
    const dead = await server.enqueue('dead', { queue: 'dead', max_retries: 0, name: 'n'.repeat(150) });
    await server.worker('w-dead', { queues: ['dead'] });
    const [held] = await server.claim('w-dead');
    await server.report('w-dead', [held, 'fail', { error: `it broke ${'y'.repeat(300)}` }]);
    assert.ok(dead.id);
});
after(async () => {
    await browser.close();
    await server.remove();
});

const places = () => ['#/', '#/tasks', '#/queues', '#/workers', '#/services', '#/jobs', '#/jobs?tab=categories', '#/schedules',
    '#/schedules?tab=recurring', '#/recovery', '#/recovery?tab=dead', '#/tokens', '#/audit', '#/keys', '#/workflows', '#/workflows/etl', '#/tasks?status=dead_letter',
    ...['timeline', 'logs', 'data', 'checkpoints'].map((tab) => `#/tasks/${story.held.id}?tab=${tab}`)];

async function visit(page, hash) {
    await page.evaluate((next) => { location.hash = next; }, hash);
    await page.waitForTimeout(100);
    await page.locator('.page h1').first().waitFor();
    await until(async () => await page.locator('.loading').count() === 0, `${hash} loaded`);
    await page.waitForTimeout(150);
}

for (const colorScheme of ['light', 'dark'])
    test(`axe-core finds nothing serious in ${colorScheme}`, async () => {
        const page = await openPage(browser, server, '#/', { colorScheme });
        const found = [];
        for (const hash of places()) {
            await visit(page, hash);
            found.push(...(await axe(page)).map((line) => `${hash} ${line}`));
        }
        await visit(page, '#/schedules');
        await page.getByRole('button', { name: 'New schedule' }).click();
        await page.getByLabel('Cron expression').fill('0 9 * * MON');
        await page.getByText('At 09:00').waitFor();
        found.push(...(await axe(page)).map((line) => `form ${line}`));
        await page.keyboard.press('Escape'); // something was typed
        await page.getByRole('button', { name: 'Discard' }).waitFor();
        found.push(...(await axe(page)).map((line) => `unsaved ${line}`));
        await page.getByRole('button', { name: 'Discard' }).click();
        for (const [hash, name] of [['#/jobs', 'New job'], ['#/schedules?tab=recurring', 'New pattern']]) {
            await visit(page, hash);
            await page.getByRole('button', { name }).click();
            await page.getByRole('dialog').waitFor();
            await page.waitForTimeout(150);
            found.push(...(await axe(page)).map((line) => `${name} ${line}`));
            await page.keyboard.press('Escape');
            await page.getByRole('dialog').waitFor({ state: 'detached' });
        }
        await page.keyboard.press('?');
        await page.getByRole('dialog').waitFor();
        found.push(...(await axe(page)).map((line) => `help ${line}`));
        await page.done();
        assert.deepEqual(found, []);
    });

// Texts that touch: two words of different elements on one line without a gap between them.
const touching = () => {
    const found = [];
    const walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
    const box = (node, last) => {
        const range = document.createRange();
        range.selectNodeContents(node);
        const boxes = [...range.getClientRects()].filter((one) => one.width > 1 && one.height > 1);
        return last ? boxes.at(-1) : boxes[0];
    };
    for (let before = null, node = walker.nextNode(); node; node = walker.nextNode()) {
        if (!node.data.trim() || !box(node) || node.parentElement.closest('svg, .visually-hidden, pre, .json'))
            continue;
        const [left, right] = before ? [box(before, true), box(node)] : [];
        if (left && Math.abs(left.top - right.top) < 4 && right.left - left.right < 2 && right.left - left.right > -2
            && before.parentElement !== node.parentElement && /[\p{L}\p{N}]$/u.test(before.data)
            && /^[\p{L}\p{N}]/u.test(node.data))
            found.push(`${before.data.slice(-20)}|${node.data.slice(0, 20)}`);
        before = node;
    }
    return found;
};

test('on a phone nothing is wider than the screen, no words touch, and every page is reached', async () => {
    const job = await server.post('/v1/jobs', { name: 'ran:once', queue: 'ran-once' });
    await server.post(`/v1/jobs/${job.id}:run`);
    await server.worker('w-once', { queues: ['ran-once'] });
    const [held] = await server.claim('w-once');
    await server.report('w-once', [held, 'complete', {}]);
    const page = await openPage(browser, server, '#/', { viewport: { width: 360, height: 740 }, hasTouch: true,
        isMobile: true });
    for (const hash of places()) {
        await visit(page, hash);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(wide <= 360, `${hash} is ${wide} px wide`);
        assert.deepEqual(await page.evaluate(touching), [], hash);
    }
    await visit(page, '#/jobs');
    await page.getByRole('button', { name: 'New job' }).click();
    await page.getByRole('dialog').waitFor();
    const size = () => page.evaluate(() => parseFloat(getComputedStyle(document.activeElement).fontSize));
    assert.ok(await size() >= 16); // a smaller one makes phones zoom in
    await page.getByRole('button', { name: 'Back', exact: true }).tap();
    await visit(page, '#/schedules');
    await page.getByRole('button', { name: 'New schedule' }).tap();
    await page.getByLabel('Cron expression').fill('30 9 * * MON');
    await page.getByLabel('Time zone').fill('America/New_York');
    await page.getByText('Times in America/New_York').waitFor();
    assert.ok(await page.getByRole('dialog').evaluate((box) => box.scrollWidth <= box.clientWidth));
    await page.getByRole('button', { name: 'Back', exact: true }).tap();
    await page.getByRole('button', { name: 'Discard' }).tap();
    await page.getByRole('link', { name: 'Recovery' }).tap();
    await page.getByRole('heading', { name: 'Recovery' }).waitFor();
    await page.done();
});

test('with the keyboard alone: skip, search, go, move, select, open, act, confirm', async () => {
    const page = await openPage(browser, server, '#/');
    const focused = () => page.evaluate(() => document.activeElement.textContent?.trim().slice(0, 60)
        || document.activeElement.id || document.activeElement.getAttribute('aria-label'));
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.keyboard.press('Tab');
    assert.equal(await focused(), 'Skip to content');
    await page.keyboard.press('Enter');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'content');
    for (const [key, heading] of [['t', 'Tasks'], ['f', 'Workflows'], ['q', 'Queues'], ['w', 'Workers'], ['v', 'Services'], ['j', 'Jobs'],
        ['s', 'Schedules'], ['r', 'Recovery'], ['k', 'Tokens'], ['a', 'Audit'], ['e', 'Keys'], ['o', 'Overview']]) {
        await page.keyboard.press('g');
        await page.keyboard.press(key);
        await page.getByRole('heading', { name: heading, level: 1 }).waitFor();
    }
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.keyboard.press('/');
    await page.keyboard.type('queue:mail status:pending');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Tasks' }).waitFor();
    const rows = page.locator('tbody tr');
    await rows.first().waitFor();
    await until(async () => (await rows.allInnerTexts()).every((text) => text.includes('mail')), 'the filter');
    await page.keyboard.press('j');
    await page.keyboard.press('j');
    await page.keyboard.press('x');
    await page.getByText('1 selected').waitFor();
    await page.keyboard.press('k');
    const name = await focused();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name, level: 1 }).waitFor();
    const id = page.url().split('/').pop();
    await page.getByRole('button', { name: 'Cancel', exact: true }).waitFor();
    for (let at = 0; at < 40 && await focused() !== 'Cancel'; at++)
        await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    for (let at = 0; at < 6 && !(await focused() === 'Cancel'); at++)
        await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await until(async () => (await server.get(`/v1/tasks/${id}`)).status === 'cancelled', 'cancelled');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.getByRole('tab', { name: 'Timeline' }).focus();
    await page.keyboard.press('ArrowRight');
    await page.getByRole('tab', { name: 'Log', selected: true }).waitFor();
    await page.done();
});

test('what is focused stays focused while figures change', async () => {
    const page = await openPage(browser, server, '#/queues');
    const button = page.getByRole('button', { name: 'Pause: default' });
    await button.focus();
    await addBacklog(server, 5);
    await page.waitForResponse((reply) => reply.url().includes('/v1/queues'));
    await page.waitForResponse((reply) => reply.url().includes('/v1/queues'));
    assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-label')), 'Pause: default');
    await page.done();
});
