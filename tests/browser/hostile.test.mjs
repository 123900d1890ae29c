// Names, payloads, results, errors and log lines are text, whatever is in them: no script runs, the
// content security policy is never even touched, and the page stays usable.
import { after, before, test } from 'node:test';
import * as assert from 'node:assert/strict';
import { openBrowser, openPage, Server, until } from './harness.mjs';

const EVIL = ['<script>window.hit=1</script>', '<img src=x onerror="window.hit=1">',
    '"><svg/onload=window.hit=1>', '\';window.hit=1;//', '{{constructor.constructor("window.hit=1")()}}',
    'javascript:window.hit=1', '</textarea><script>window.hit=1</script>', '${window.hit=1}',
    '\u202Etxt.exe\u001b[31m', '<a href="javascript:window.hit=1">x</a>', '__proto__', 'constructor'];

let server, browser;
before(async () => {
    server = await Server.start();
    browser = await openBrowser();
});
after(async () => {
    await browser.close();
    await server.remove();
});

test('hostile words are shown as words on every page', async () => {
    const clean = (text) => text.replace(/[\u0000-\u001f]/g, ' ');
    const all = EVIL.join(' ');
    const { items } = await server.post('/v1/tasks', EVIL.map((text) => ({ type: clean(text),
        name: clean(text), queue: 'evil', tags: [clean(text)], user_id: clean(text), workflow_id: 'evil<b>',
        correlation_id: clean(text), max_retries: 0, payload: { [text]: text, list: EVIL },
        note: clean(text), metadata: { [clean(text)]: text } })));
    await server.worker('w<img src=x onerror=window.hit=1>'.replace(/[<>= ]/g, '-'), { queues: ['evil'],
        hostname: '<img src=x onerror=window.hit=1>', pool_size: 50 });
    const worker = (await server.get('/v1/workers')).items.find((one) => one.queues.includes('evil')).id;
    const held = await server.claim(worker, 50);
    await server.report(worker, ...held.flatMap((task) => [
        [task, 'progress', { progress: 10, state: all.slice(0, 200).replace(/[\u0000-\u001f]/g, ' ') }],
        [task, 'checkpoint', { name: '<script>window.hit=1</script>', progress: 20, data: { [all]: all } }],
        [task, 'log', { level: 'ERROR', message: all, context: { [EVIL[0]]: EVIL[1] } }],
        [task, 'fail', { error: all, details: { [EVIL[1]]: EVIL } }]]));
    await server.post('/v1/jobs', { name: EVIL[1], description: EVIL[0], payload: { x: EVIL[2] } });
    await server.post(`/v1/jobs/${encodeURIComponent(EVIL[1])}/schedules`, { interval_seconds: 60 });

    const page = await openPage(browser, server, '#/');
    await page.evaluate(() => {
        window.hit = 0;
        window.breaches = [];
        addEventListener('securitypolicyviolation', (event) => window.breaches.push(event.violatedDirective));
    });
    const id = items[1].id;
    const visits = ['#/', '#/tasks?queue=evil', `#/tasks?type=${encodeURIComponent(EVIL[0])}`,
        ...['timeline', 'logs', 'data', 'checkpoints'].map((tab) => `#/tasks/${id}?tab=${tab}`),
        '#/queues', '#/workers', '#/jobs', '#/schedules', '#/recovery?tab=dead',
        `#/workflows/${encodeURIComponent('evil<b>')}`, `#/tasks?tag=${encodeURIComponent('"><script>')}`,
        '#/%3Cscript%3Ewindow.hit=1%3C/script%3E', '#/tasks/%', '#/__proto__', '#/constructor'];
    for (const hash of visits) {
        await page.evaluate((next) => { location.hash = next; }, hash);
        await page.waitForTimeout(150);
        await page.locator('.page h1').first().waitFor();
        await until(async () => await page.locator('.loading').count() === 0, `${hash} loaded`);
        assert.deepEqual(await page.evaluate(() => [window.hit, window.breaches]), [0, []], hash);
        assert.equal(await page.locator('main script, main img, main iframe, main a[href^="javascript"]').count(),
            0, hash);
    }
    await page.evaluate((next) => { location.hash = next; }, `#/tasks/${id}?tab=data`);
    for (const mode of ['Text', 'Hex', 'Tree'])
        for (const button of await page.getByRole('button', { name: mode, exact: true }).all())
            await button.click();
    await page.getByText('<img src=x onerror="window.hit=1">', { exact: false }).first().waitFor();
    assert.deepEqual(await page.evaluate(() => [window.hit, window.breaches]), [0, []]);
    await page.context().close();
});

test('a script that is put into the page does not run', async () => {
    const page = await openPage(browser, server, '#/', { allow: [/Content Security Policy|TrustedHTML|Refused/] });
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    const outcome = await page.evaluate(() => {
        window.ran = 0;
        let refused = 0;
        for (const put of [() => { document.body.innerHTML += '<img src=x onerror="window.ran=1">'; },
            () => { const made = document.createElement('script'); made.text = 'window.ran=1';
                document.body.append(made); },
            () => setTimeout('window.ran=1')]) // a debugger's own eval is let through: not that
            try {
                put();
            } catch {
                refused++;
            }
        return new Promise((resolve) => setTimeout(() => resolve([window.ran, refused > 0]), 200));
    });
    assert.deepEqual(outcome, [0, true]);
    await page.context().close();
});
