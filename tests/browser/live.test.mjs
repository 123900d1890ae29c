// What changes shows by itself; a lost connection is said and found again; the token is asked for.
import { after, afterEach, before, test } from 'node:test';
import * as assert from 'node:assert/strict';
import { openBrowser, openPage, Server, until } from './harness.mjs';

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
const open = async (hash, options) => { page = await openPage(browser, server, hash, options); };
const tile = (label) => page.locator('.tile', { hasText: label }).locator('.tile-value').innerText();

test('figures of the overview move without a reload', async () => {
    await open('#/');
    await until(async () => (await tile('Waiting')).trim() === '0', 'nothing waits');
    await server.post('/v1/tasks', Array.from({ length: 40 }, () => ({ type: 'l', queue: 'live' })));
    await until(async () => (await tile('Waiting')).trim() === '40', '40 wait');
    await server.worker('w-live', { queues: ['live'], pool_size: 40 });
    const held = await server.claim('w-live', 40);
    await server.report('w-live', ...held.map((task) => [task, 'complete', {}]));
    await until(async () => (await tile('Waiting')).trim() === '0', 'none waits');
    await until(async () => parseFloat(await tile('Throughput')) > 0, 'a throughput');
});

test('rows of the list follow their tasks, and new ones are announced', async () => {
    const { id } = await server.enqueue('row', { queue: 'rows', name: 'follow me' });
    await open('#/tasks?queue=rows');
    const row = page.locator('tr', { hasText: 'follow me' });
    await row.locator('.status.pending').waitFor();
    await server.worker('w-rows', { queues: ['rows'] });
    const [held] = await server.claim('w-rows');
    await server.report('w-rows', [held, 'progress', { progress: 30 }]);
    await row.locator('.status.running').waitFor();
    await until(async () => await row.getByRole('progressbar').getAttribute('aria-valuenow') === '30', '30 %');
    await server.report('w-rows', [held, 'complete', {}]);
    await row.locator('.status.completed').waitFor();
    await until(async () => (await row.locator('td').nth(5).innerText()) === '1', 'its attempts');
    await server.enqueue('row', { queue: 'rows', name: 'brand new' });
    await page.getByRole('button', { name: '1 new task: show' }).click();
    await page.getByRole('link', { name: 'brand new' }).waitFor();
    assert.equal((await server.get(`/v1/tasks/${id}`)).status, 'completed');
});

test('the page of a task follows its progress', async () => {
    const { id } = await server.enqueue('bar', { queue: 'bar' });
    await open(`#/tasks/${id}`);
    await server.worker('w-bar', { queues: ['bar'] });
    const [held] = await server.claim('w-bar');
    for (const progress of [20, 60, 90]) {
        await server.report('w-bar', [held, 'progress', { progress, state: `At ${progress}` }]);
        await page.locator('.progress-line').getByText(`At ${progress}`).waitFor();
    }
});

test('a lost connection is said, what was shown stays, and it comes back by itself', async () => {
    await open('#/queues', { allow: [/ERR_CONNECTION|Failed to load/] });
    await page.getByRole('link', { name: 'rows' }).waitFor();
    await server.stop('SIGKILL');
    await page.getByText('Connection to the server lost', { exact: false }).waitFor();
    await page.getByRole('link', { name: 'rows' }).waitFor();
    await server.restart();
    await page.getByText('Connection to the server lost', { exact: false }).waitFor({ state: 'detached' });
});

test('what changed while the connection was lost is shown when it is back', async () => {
    const tasks = await server.post('/v1/tasks', ['stays', 'changes'].map((name) => ({ type: 'gap', queue: 'gaps', name })));
    await open('#/tasks?queue=gaps', { allow: [/ERR_CONNECTION|Failed to load|ERR_/] });
    const row = page.locator('tr', { hasText: 'changes' });
    await row.locator('.status.pending').waitFor();
    await server.post(`/v1/tasks/${tasks.items[0].id}:prioritize`, { priority: 3 }); // an event it has seen
    const asked = [];
    page.on('request', (request) => /\/v1\/stream/.test(request.url())
        && asked.push(request.headers()['last-event-id']));
    await server.stop('SIGKILL');
    await page.getByText('Connection to the server lost', { exact: false }).waitFor();
    await server.restart();
    await server.post(`/v1/tasks/${tasks.items[1].id}:cancel`);
    await row.locator('.status.cancelled').waitFor();
    assert.match(asked.at(-1), /^[0-9a-f]+-\d+$/); // what came behind that it wanted to know
});

test('a server with a token asks for it, refuses a wrong one and keeps the right one for the tab', async () => {
    const locked = await Server.start({ environment: { PERDURA_TOKEN: 's3cret-token' } });
    try {
        page = await openPage(browser, locked, '#/queues', { allow: [/401/] });
        await page.getByLabel('Token').fill('wrong');
        await page.getByRole('button', { name: 'Sign in' }).click();
        await page.getByText('This token is not valid here').waitFor();
        await page.getByLabel('Token').fill('s3cret-token');
        await page.keyboard.press('Enter');
        await page.getByRole('heading', { name: 'Queues' }).waitFor();
        await page.reload();
        await page.getByRole('heading', { name: 'Queues' }).waitFor();
        const kept = await page.evaluate(() => [Object.values(localStorage).join(),
            sessionStorage.getItem('perdura.token')]);
        assert.ok(!kept[0].includes('s3cret'));
        assert.equal(kept[1], 's3cret-token');
        await locked.enqueue('t', { queue: 'through' });
        await page.getByRole('link', { name: 'through' }).waitFor();
    } finally {
        await page.done();
        page = null;
        await locked.remove();
    }
});

test('it speaks English, French and Portuguese, as the browser does or as chosen', async () => {
    await open('#/tasks', { locale: 'fr-FR' });
    await page.getByRole('heading', { name: 'Tâches' }).waitFor();
    await page.getByLabel('Langue').selectOption('pt');
    await page.getByRole('heading', { name: 'Tarefas' }).waitFor();
    assert.equal(await page.evaluate(() => document.documentElement.lang), 'pt');
    await page.reload();
    await page.getByRole('heading', { name: 'Tarefas' }).waitFor();
});

test('the theme follows the system until one is chosen, which is kept', async () => {
    await open('#/', { colorScheme: 'dark' });
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    const dark = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const before = await dark();
    await page.getByRole('button', { name: 'Light theme' }).click();
    assert.notEqual(await dark(), before);
    await page.reload();
    await page.getByRole('button', { name: 'Dark theme' }).waitFor();
    assert.notEqual(await dark(), before);
});
