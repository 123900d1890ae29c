// D12: the dashboard shows nothing that the signed-in person may not see or do, and all that they may. For
// every role the pages, links, buttons and keys are compared with what the API answers to the same
// operation: each button says which one it asks for.
import { after, before, test } from 'node:test';
import * as assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { openBrowser, openPage, Server, until } from './harness.mjs';
import { addDeadLetters, addPlans, addStory, addWorkflow } from './busy.mjs';

const ROOT = 'root-secret-of-the-test';
const ROLES = ['viewer', 'reader', 'producer', 'worker', 'operator', 'editor', 'admin'];
const CUSTOM = { 'audit alone': ['audit:read'], 'figures alone': ['metrics:read'],
    'access alone': ['access:write'], 'plans without tasks': ['plans:read', 'plans:run'] };
const program = path.join(process.env.PERDURA_BUILD ?? 'build', 'perdura');
let server, browser, folder, story, waiting, dead, api;

before(async () => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'perdura-browser-'));
    const keys = ['old', 'new'].map((id) => {
        execFileSync(program, ['key', 'add', id, '--file', path.join(folder, `${id}.key`)], { stdio: 'ignore' });
        return `    - {id: ${id}, file: ${path.join(folder, `${id}.key`)}}`;
    });
    const file = path.join(folder, 'perdura.yaml');
    const write = (current) => fs.writeFileSync(file, ['encryption:', `  current: ${current}`, '  keys:', ...keys, ''].join('\n'));
    write('old');
    server = await Server.start({ environment: { PERDURA_TOKEN: ROOT }, arguments: ['--config', file, '--lease', '1s'] });
    await server.enqueue('secret', { encrypt: true, payload: { a: 1 } });
    await server.worker('w-lost', { queues: ['lost'] });
    await server.enqueue('lost', { queue: 'lost', auto_recovery: false });
    await server.claim('w-lost');
    await until(async () => (await server.get('/v1/recovery/candidates?auto_recovery=any')).items.length > 0, 'a lost task');
    await server.stop();
    server.options.arguments = ['--config', file];
    write('new'); // so that a rotation has something to do
    await server.restart();
    browser = await openBrowser();
    story = await addStory(server);
    await addPlans(server);
    await addWorkflow(server, 'etl');
    await addDeadLetters(server);
    waiting = await server.enqueue('waiting', { queue: 'mail' });
    await server.post('/v1/queues/mail:pause');
    await server.api('PATCH', '/v1/queues/empty', { concurrency: 1 });
    dead = (await server.get('/v1/tasks?status=dead_letter')).items[0];
    api = (await server.get('/openapi.json')).paths;
});
after(async () => {
    await browser?.close();
    await server.remove();
    fs.rmSync(folder, { recursive: true, force: true });
});

const places = () => ['#/', '#/tasks?status=pending', '#/tasks?status=dead_letter', `#/tasks/${waiting.id}`,
    `#/tasks/${story.held.id}`, `#/tasks/${dead.id}`, '#/workflows', '#/workflows/etl', '#/queues', '#/workers', '#/services', '#/jobs',
    '#/jobs?tab=categories', '#/schedules', '#/schedules?tab=recurring', '#/recovery', '#/recovery?tab=dead',
    '#/tokens', '#/namespaces', '#/audit', '#/keys'];

// Requests of a page that have no answer yet; the stream never ends.
const asked = new WeakMap();
function follow(page) {
    const open = new Set();
    asked.set(page, open);
    page.on('request', (one) => /\/v1\/(?!stream|events)/.test(one.url()) && open.add(one));
    for (const end of ['requestfinished', 'requestfailed'])
        page.on(end, (one) => open.delete(one));
}

// What a page shows: null where it says that it is not for this person.
async function look(page, hash) {
    await page.evaluate((next) => { location.hash = next; }, hash);
    await page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));
    await page.locator('.page h1').first().waitFor();
    let quiet = 0; // looks in a row that find nothing under way
    await until(async () => {
        quiet = asked.get(page).size === 0 && await page.locator('.loading').count() === 0 ? quiet + 1 : 0;
        await page.waitForTimeout(50);
        return quiet > 5;
    }, `${hash} loaded`);
    const isElsewhere = await page.evaluate(() => location.hash) !== hash; // the first page that it may see
    if (isElsewhere || await page.getByRole('heading', { name: /^(Not for you|Who is signed in)$/, level: 1 }).count())
        return null;
    return page.evaluate(() => [...document.querySelectorAll('main [data-op]')].map((one) => one.dataset.op));
}

// Whether the API lets this one in: nothing is done, because what is asked for is not there or not JSON.
async function lets(token, operation) {
    const [method, pattern] = operation.split(' ');
    const where = pattern.replace('{dependency_id}', '00000000-0000-0000-0000-000000000000')
        .replace(/\{\w+\}/g, '00000000-0000-0000-0000-000000000000');
    const write = method === 'POST' || method === 'PATCH';
    const reply = await server.fetch(method, where, write ? {} : undefined, token, write ? 'text/plain' : undefined);
    assert.ok(!write || [403, 415].includes(reply.status), `${operation}: ${reply.status}`);
    return reply.status !== 403;
}

const unique = (list) => [...new Set(list)].sort();
let everything; // by place, as an administrator sees it

async function walk(token) {
    const page = await openPage(browser, server, '#/jobs', { token, allow: [/404/] }); // what is not theirs is not there
    follow(page);
    await page.locator('.page h1').first().waitFor();
    const seen = {};
    for (const hash of places())
        seen[hash] = await look(page, hash);
    const links = await page.evaluate(() => [...document.querySelectorAll('nav.side li a')].map((one) => one.getAttribute('href')));
    return { page, seen, links };
}

test('an administrator sees a button for each kind of operation, and each is one of the API', async () => {
    const { page, seen } = await walk(ROOT);
    everything = seen;
    const all = unique(Object.values(seen).flat());
    for (const operation of all) {
        const [method, where] = operation.split(' ');
        assert.ok(api[where]?.[method.toLowerCase()], `${operation} is not in openapi.json`);
    }
    for (const wanted of ['POST /v1/tasks:cancel', 'POST /v1/tasks:retry', 'POST /v1/tasks/{id}:cancel',
        'POST /v1/tasks/{id}:retry', 'POST /v1/tasks/{id}:pause', 'POST /v1/tasks/{id}:prioritize', 'POST /v1/tasks/{id}:fork',
        'PATCH /v1/tasks/{id}', 'DELETE /v1/tasks/{id}', 'PATCH /v1/queues/{name}', 'POST /v1/queues/{name}:pause',
        'POST /v1/queues/{name}:resume', 'DELETE /v1/queues/{name}', 'POST /v1/jobs', 'PATCH /v1/jobs/{id}',
        'DELETE /v1/jobs/{id}', 'POST /v1/jobs/{id}:run', 'POST /v1/categories', 'PATCH /v1/categories/{id}',
        'DELETE /v1/categories/{id}', 'POST /v1/schedules', 'POST /v1/schedules/{id}:pause', 'POST /v1/schedules/{id}:resume',
        'POST /v1/schedules/{id}:run', 'PATCH /v1/schedules/{id}', 'DELETE /v1/schedules/{id}', 'POST /v1/recurring',
        'PATCH /v1/recurring/{id}', 'POST /v1/recurring/{id}:run', 'POST /v1/recovery', 'POST /v1/recovery/validate',
        'POST /v1/tokens', 'POST /v1/tokens/{id}:rotate', 'DELETE /v1/tokens/{id}', 'POST /v1/keys:rotate',
        'POST /v1/keys:destroy', 'POST /v1/namespaces', 'PATCH /v1/namespaces/{name}'])
        assert.ok(all.includes(wanted) || /tokens\/\{id\}/.test(wanted), `no button for ${wanted}`);
    await page.done();
});

async function compare(token) {
    const { page, seen, links } = await walk(token);
    const refused = [];
    page.on('response', (reply) => reply.status() === 403 && refused.push(reply.url()));
    for (const [hash, operations] of Object.entries(seen)) {
        const first = await opened(token, hash);
        assert.equal(operations !== null, first, `${hash} is ${operations ? 'shown' : 'hidden'}`);
        const wanted = [];
        for (const operation of operations === null ? [] : unique(everything[hash] ?? []))
            if (await lets(token, operation))
                wanted.push(operation);
        if (hash !== '#/tokens') // tokens are made by this test meanwhile
            assert.deepEqual(unique(operations ?? []), wanted, hash);
    }
    for (const hash of ['#/', '#/tasks', '#/workflows', '#/queues', '#/workers', '#/services', '#/jobs', '#/schedules', '#/recovery',
        '#/tokens', '#/namespaces', '#/audit', '#/keys'])
        assert.equal(links.includes(hash), await opened(token, hash), `${hash} in the navigation`);
    // Links that lead to a page which says no are words.
    const dead = await page.evaluate(() => [...document.querySelectorAll('a[href^="#/"]')].map((one) => one.getAttribute('href')));
    for (const href of unique(dead.filter((one) => !/^#\/(tasks|workflows)\/./.test(one)).map((one) => one.split('?')[0])))
        assert.ok(await opened(token, href), `a link to ${href}`);
    return { page, refused };
}

// What a page asks the API for first.
const FIRST = { '': 'stats', tasks: 'tasks', workflows: 'tasks', queues: 'queues', workers: 'workers', services: 'services', jobs: 'jobs',
    schedules: 'schedules', recovery: 'recovery', tokens: 'tokens', namespaces: 'namespaces', audit: 'audit', keys: 'keys' };
async function opened(token, hash) {
    const [, page, id] = /^#\/(\w*)(?:\/([^?]*))?/.exec(hash);
    const where = id ? `/v1/${page}/${id}` : `/v1/${FIRST[page]}`;
    const status = (await server.fetch('GET', where, undefined, token)).status;
    const who = await (await server.fetch('GET', '/v1/whoami', undefined, token)).json();
    return status !== 403 && (page !== 'namespaces' || who.namespace === '*'); // theirs alone is no list
}

for (const role of ROLES)
    test(`the role ${role} sees what the API lets it do, and nothing else`, async () => {
        const { token } = await server.post('/v1/tokens', { name: `the ${role}`, role });
        const { page, refused } = await compare(token);
        if (role === 'viewer') {
            await look(page, `#/tasks/${story.held.id}?tab=data`);
            await page.getByText('Not shown: needs payloads:read').first().waitFor();
            await look(page, `#/tasks/${story.held.id}?tab=logs`);
            await page.getByText('Not shown: needs payloads:read').nth(2).waitFor();
            assert.equal(await page.getByLabel('Find', { exact: false }).count(), 1); // the search above, not in the log
            assert.equal(await page.getByText('keynote.mov').count(), 1); // its name alone
            await look(page, `#/tasks/${dead.id}`);
            await page.locator('.problem').getByText('Not shown: needs payloads:read').waitFor();
            await look(page, '#/tasks');
            assert.equal(await page.locator('main input[type=checkbox]').count(), 0); // nothing to select for
        }
        if (role === 'producer') { // its own, by id
            const mine = await (await server.fetch('POST', '/v1/tasks', { type: 'mine', payload: { a: 'of mine' } }, token)).json();
            await look(page, `#/tasks/${mine.id}?tab=data`);
            await page.getByText('of mine').waitFor();
            assert.equal(await page.locator('main [data-op]').count(), 0);
        }
        await page.keyboard.press('g');
        await page.keyboard.press('k');
        await page.waitForTimeout(200);
        assert.equal(page.url().endsWith('#/tokens'), role === 'admin');
        assert.deepEqual(refused, []);
        await page.done();
    });

for (const [name, scopes] of Object.entries(CUSTOM))
    test(`${name}: the first page is one that it may see, and it asks for nothing else`, async () => {
        const { token } = await server.post('/v1/tokens', { name, scopes });
        const start = await openPage(browser, server, '#/', { token });
        await start.locator('.page h1').first().waitFor();
        await until(async () => await start.locator('h1').first().innerText() !== 'Not for you', 'a page');
        await start.done();
        const { page, refused } = await compare(token);
        assert.deepEqual(refused, []);
        await page.done();
    });

test('a worker has no page: it says so, and what the token is for', async () => {
    const { token } = await server.post('/v1/tokens', { name: 'w', role: 'worker' });
    const page = await openPage(browser, server, '#/', { token });
    await page.getByText('There is no page here that you may see').waitFor();
    await page.getByText('register as a worker', { exact: false }).waitFor();
    await page.done();
});
