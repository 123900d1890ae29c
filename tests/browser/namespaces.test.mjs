// The switch between namespaces (D12): there where there is a choice, and every request of the page is
// about what it says, the stream too.
import { after, afterEach, before, test } from 'node:test';
import * as assert from 'node:assert/strict';
import { openBrowser, openPage, Server } from './harness.mjs';

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
