// The conversation of a task that an agent works on (C9): messages, tool calls with arguments and results,
// tokens and cost; a question is answered by a button; without payloads:read nothing of it is shown.
import { after, afterEach, before, test } from 'node:test';
import * as assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { openBrowser, openPage, Server, until } from './harness.mjs';

const perdura = path.join(process.env.PERDURA_BUILD ?? 'build', 'perdura');
const TOKEN = 'agent-test-admin-token';
const LINES = [
    { turn: 0, when: 'tea', tools: [{ name: 'search', arguments: { q: 'tea leaves' } }], tokens: [1200, 34] },
    { turn: 1, when: 'found', final: 'Tea is a drink.', tokens: [1300, 20] },
    { turn: 0, tools: [{ name: 'send', arguments: {} }] }, { turn: 1, final: 'sent' }];

let server, browser, page, mock, folder, viewer;
before(async () => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'perdura-agents-'));
    fs.writeFileSync(path.join(folder, 'script.json'), JSON.stringify({ lines: LINES }));
    mock = spawn(perdura, ['mock-model', '--script', path.join(folder, 'script.json'), '--port', '0'],
        { stdio: ['ignore', 'pipe', 'inherit'] });
    const url = await new Promise((resolve) => {
        let text = '';
        mock.stdout.on('data', (data) => {
            text += data;
            const found = /listening on (\S+)\n/.exec(text);
            if (found)
                resolve(found[1]);
        });
    });
    const config = path.join(folder, 'p.yaml');
    fs.writeFileSync(config, `
models:
  - {name: default, url: "${url}", model: mock, price: {input: 1, output: 2}}
agents:
  - {id: researcher, tools: [search, send]}
tools:
  - {name: search, command: [sh, -c, 'echo "found <b>leaves</b>"'], safe_to_retry: true}
  - {name: send, command: [sh, -c, 'touch ${folder}/begun; test -e ${folder}/go || sleep 300']}
`, { mode: 0o600 });
    server = await Server.start({ arguments: ['--config', config, '--lease', '2s'], environment: { PERDURA_TOKEN: TOKEN } });
    browser = await openBrowser();
    viewer = await server.post('/v1/tokens', { name: 'v', scopes: ['tasks:read'] });
});
after(async () => {
    await browser.close();
    await server.remove();
    mock.kill();
    fs.rmSync(folder, { recursive: true });
});
afterEach(async () => page?.done());

const ends = (id, status) => until(async () => (await server.get(`/v1/tasks/${id}`)).status === status, status);
const enqueue = (payload) => server.post('/v1/tasks', { type: 'any', queue: 'researcher', payload });

test('the conversation shows messages, calls with results, tokens and cost', async () => {
    const { id } = await enqueue({ topic: 'tea' });
    await ends(id, 'completed');
    page = await openPage(browser, server, `#/tasks/${id}?tab=conversation`, { token: TOKEN });
    await page.getByText('Calls of the model').waitFor();
    const talk = page.locator('.conversation');
    assert.equal(await talk.locator('li.message').count(), 4);
    assert.match(await talk.innerText(), /search[\s\S]*tea leaves[\s\S]*found <b>leaves<\/b>/);
    assert.match(await talk.innerText(), /finalAnswer[\s\S]*Tea is a drink\./);
    await page.getByText('2,500 + 54').waitFor();
    await page.getByText('0.002608').waitFor();
});

test('a question about a call that may have happened is answered by a button', async () => {
    const { id } = await enqueue({ topic: 'send it' });
    await until(() => fs.existsSync(path.join(folder, 'begun')), 'the tool');
    fs.writeFileSync(path.join(folder, 'go'), '');
    await server.stop('SIGKILL');
    await server.restart();
    await ends(id, 'paused');
    page = await openPage(browser, server, `#/tasks/${id}?tab=conversation`, { token: TOKEN });
    await page.getByText('may have happened', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Make the call again' }).click();
    await ends(id, 'completed');
});

test('without payloads:read nothing of it is shown', async () => {
    const { id } = await enqueue({ topic: 'tea' });
    await ends(id, 'completed');
    page = await openPage(browser, server, `#/tasks/${id}?tab=conversation`, { token: viewer.token });
    await page.getByText('Not shown: needs payloads:read').first().waitFor();
    assert.doesNotMatch(await page.locator('body').innerText(), /tea leaves|Tea is a drink/);
});
