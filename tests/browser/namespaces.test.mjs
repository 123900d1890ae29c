// The switch between namespaces (D12): there where there is a choice, and every request of the page is
// about what it says, the stream too.
import { after, afterEach, before, test } from 'node:test';
import * as assert from 'node:assert/strict';
import { axe, openBrowser, openPage, Server, until } from './harness.mjs';

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

const open = async (hash) => { page = await openPage(browser, server, hash); };
const choice = () => page.getByRole('combobox', { name: 'Namespace' });

async function ask(method, path, body, within) {
    const reply = await fetch(`${server.url}${path}`, { method, body: JSON.stringify(body),
        headers: { 'Content-Type': 'application/json',
            ...(within ? { 'Perdura-Namespace': within } : {}) } });
    assert.ok(reply.ok, `${method} ${path}: ${reply.status}`);
    return reply.json();
}

test('D12 a namespace is chosen where there are several, and nothing of another is shown', async () => {
    await open('#/tasks');
    await page.getByRole('searchbox').waitFor();
    assert.equal(await choice().count(), 0);
    await page.done();
    await ask('POST', '/v1/namespaces', { name: 'acme' });
    await ask('POST', '/v1/tasks', { type: 'theirs', name: 'task of acme' }, 'acme');
    await ask('POST', '/v1/tasks', { type: 'ours', name: 'task of default' });
    await open('#/tasks');
    await page.getByText('task of default').first().waitFor();
    assert.equal(await page.getByText('task of acme').count(), 0);
    const requests = [];
    page.on('request', (one) => requests.push([new URL(one.url()).pathname,
        one.headers()['perdura-namespace']]));
    await Promise.all([page.waitForEvent('load'), choice().selectOption('acme')]);
    await page.evaluate(() => { location.hash = '#/tasks'; });
    await page.getByText('task of acme').first().waitFor();
    assert.equal(await page.getByText('task of default').count(), 0);
    const streams = requests.filter(([path]) => path === '/v1/stream');
    assert.ok(streams.length > 0);
    assert.ok(streams.every(([, within]) => within === 'acme'), JSON.stringify(streams));
    await ask('POST', '/v1/tasks', { type: 'theirs', name: 'a later task' }, 'acme');
    await page.getByRole('button', { name: '1 new task: show' }).click();
    await page.getByRole('link', { name: 'a later task' }).waitFor();
});

test('D12 a namespace is made, limited and deleted on its page; deleting asks for its name', async () => {
    page = await openPage(browser, server, '#/namespaces', { allow: [/409/] });
    await page.getByRole('button', { name: 'New namespace' }).click();
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('shop');
    await page.getByLabel('Waiting tasks at most').fill('500');
    await page.getByLabel('Tasks enqueued per second').fill('20');
    await page.getByLabel('Completed tasks are kept').fill('7');
    await page.keyboard.press('Enter');
    const row = page.getByRole('row', { name: /^shop/ });
    await row.getByText('Waiting tasks at most: 500').waitFor();
    const made = await ask('GET', '/v1/namespaces/shop');
    assert.deepEqual([made.limits.waiting, made.limits.enqueue_rate.count, made.retention.completed_ms],
        [500, 20, 7 * 86400e3]);
    await choice().locator('option', { hasText: 'shop' }).waitFor({ state: 'attached' }); // in the switch, too
    await row.getByRole('button', { name: 'Edit: shop' }).click();
    await page.getByLabel('Waiting tasks at most').fill('');
    await page.getByLabel('Description').fill('<img src=x onerror=window.hit=1>');
    await page.keyboard.press('Enter');
    await row.getByText('<img src=x').waitFor();
    await until(async () => (await ask('GET', '/v1/namespaces/shop')).limits.waiting === null, 'no limit');
    assert.equal((await ask('GET', '/v1/namespaces/shop')).limits.enqueue_rate.count, 20); // as it was
    await ask('POST', '/v1/tasks', { type: 't' }, 'shop');
    await row.getByRole('button', { name: 'Delete: shop' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await dialog.getByText('Type shop to show that you mean it').waitFor();
    await dialog.getByRole('textbox').fill('shop');
    await page.keyboard.press('Enter');
    await dialog.getByRole('alert').filter({ hasText: /\S/ }).first().waitFor(); // a task has not ended
    await dialog.getByLabel('also what has not ended').check();
    assert.deepEqual(await axe(page), []);
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await row.waitFor({ state: 'detached' });
    assert.equal(await page.getByRole('button', { name: 'Delete: default' }).count(), 0);
    assert.deepEqual(await axe(page), []);
    assert.equal(await page.evaluate(() => window.hit), undefined);
});

test('D12 who signs in to a namespace that is not theirs gets their own', async () => {
    const locked = await Server.start({ environment: { PERDURA_TOKEN: 'the-root' } });
    try {
        await locked.post('/v1/namespaces', { name: 'acme' });
        const made = await locked.post('/v1/tokens', { name: 'one', role: 'viewer', namespace: 'default' });
        page = await openPage(browser, locked, '#/tasks', { allow: [/40[134]/] });
        await page.getByLabel('Token', { exact: true }).waitFor();
        await page.evaluate(() => sessionStorage.setItem('perdura.namespace', 'acme'));
        await page.getByLabel('Token', { exact: true }).fill(made.token);
        await page.keyboard.press('Enter');
        await page.getByRole('heading', { name: 'Tasks', exact: true }).waitFor();
        await page.getByRole('button', { name: 'Signed in: one' }).waitFor();
        assert.equal(await page.evaluate(() => sessionStorage.getItem('perdura.namespace')), null);
        assert.equal(await page.getByRole('link', { name: 'Namespaces' }).count(), 0);
        await page.done();
    } finally {
        page = null;
        await locked.remove();
    }
});

test('D12 on a phone the switch is with who is signed in', async () => {
    await ask('POST', '/v1/namespaces', { name: 'phone' });
    page = await openPage(browser, server, '#/tasks', { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true });
    await page.getByRole('button', { name: /^Signed in/ }).tap();
    await Promise.all([page.waitForEvent('load'), choice().selectOption('phone')]);
    assert.equal(await page.evaluate(() => sessionStorage.getItem('perdura.namespace')), 'phone');
    await page.getByRole('button', { name: /^Signed in/ }).waitFor();
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
});
