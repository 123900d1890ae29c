// A server of its own and a real Chromium for every test file. PERDURA_BUILD names the folder of the
// binary, PERDURA_BROWSER_PACKAGES the node_modules with playwright-core and axe-core (the build
// puts them into browser/). Every page that a test opens is watched: a script error, a breach of the
// content security policy or a request to another host fails the test.
import { createRequire } from 'node:module';
import { spawn } from 'node:child_process';
import * as assert from 'node:assert/strict';
import * as fs from 'node:fs';
import * as net from 'node:net';
import * as os from 'node:os';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const build = process.env.PERDURA_BUILD ?? path.join(root, 'build');
const packages = process.env.PERDURA_BROWSER_PACKAGES ?? path.join(build, 'browser/node_modules');
const require = createRequire(path.join(packages, 'x.js'));
const { chromium } = require('playwright-core');
const axeSource = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const BROWSERS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

export const DEADLINE_MS = 90000; // only ever reached when a test fails

export async function until(look, what = 'the condition') {
    const end = Date.now() + DEADLINE_MS;
    for (;;) {
        const value = await look();
        if (value)
            return value;
        if (Date.now() > end)
            throw new Error(`${what} did not come true`);
        await new Promise((resolve) => setTimeout(resolve, 25));
    }
}

// Below the ports the system gives to clients: no other program takes it while the server is down.
async function freePort() {
    for (;;) {
        const port = 10000 + Math.floor(Math.random() * 20000);
        const free = await new Promise((resolve) => {
            const probe = net.createServer().once('error', () => resolve(false));
            probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
        });
        if (free)
            return port;
    }
}

export class Server {
    // options: { arguments, environment, listen }
    static async start(options = {}) {
        const server = new Server();
        server.options = options;
        server.folder = fs.mkdtempSync(path.join(os.tmpdir(), 'perdura-browser-'));
        await server.run(`127.0.0.1:${await freePort()}`);
        return server;
    }

    async run(listen) {
        const environment = Object.fromEntries(Object.entries(process.env)
            .filter(([key]) => !key.startsWith('PERDURA_T')));
        this.process = spawn(path.join(build, 'perdura'), ['serve', '--listen', listen, '--store',
            path.join(this.folder, 'perdura.db'), ...(this.options.arguments ?? [])],
        { cwd: this.folder, env: { ...environment, ...this.options.environment },
            stdio: ['ignore', 'pipe', fs.openSync(path.join(this.folder, 'stderr.log'), 'a')] });
        this.url = await new Promise((resolve, reject) => {
            let text = '';
            this.process.stdout.on('data', (data) => {
                text += data;
                const found = /listening on (https?:\S+)/.exec(text);
                if (found)
                    resolve(found[1]);
            });
            this.process.on('exit', () => reject(new Error(fs.readFileSync(
                path.join(this.folder, 'stderr.log'), 'utf8'))));
        });
    }

    async stop(signal = 'SIGTERM') {
        if (this.process.exitCode === null && this.process.signalCode === null) {
            const gone = new Promise((resolve) => this.process.once('exit', resolve));
            this.process.kill(signal);
            await gone;
        }
    }

    // The same store and the same address again.
    async restart() {
        await this.run(this.url.replace(/^https?:\/\//, ''));
    }

    async remove() {
        await this.stop();
        fs.rmSync(this.folder, { recursive: true, force: true });
    }

    // token: who asks; that of the server unless it is named.
    fetch(method, where, body, token = this.options.environment?.PERDURA_TOKEN, kind = 'application/json') {
        return fetch(this.url + where, { method,
            headers: { 'Content-Type': kind, ...(token ? { Authorization: `Bearer ${token}` } : {}) },
            body: body === undefined ? undefined : JSON.stringify(body) });
    }

    async api(method, where, body) {
        const reply = await this.fetch(method, where, body);
        const text = await reply.text();
        assert.ok(reply.ok, `${method} ${where}: ${reply.status} ${text.slice(0, 300)}`);
        return text ? JSON.parse(text) : null;
    }

    get(where) { return this.api('GET', where); }
    post(where, body = {}) { return this.api('POST', where, body); }
    enqueue(type, fields = {}) { return this.post('/v1/tasks', { type, ...fields }); }

    async worker(id, fields = {}) {
        await this.post('/v1/workers', { id, hostname: id, pool_size: 8, queues: ['default'],
            version: '1', ...fields });
        return id;
    }

    async claim(worker, max = 1) {
        return (await this.post(`/v1/workers/${worker}:claim`, { max, wait_ms: 0 })).tasks;
    }

    // reports: [task, op, fields]
    async report(worker, ...reports) {
        const answer = await this.post(`/v1/workers/${worker}:report`, reports.map(([task, op, fields]) => (
            { task_id: task.id, lease_token: task.lease_token, op, ...fields })));
        for (const item of answer.items)
            assert.ok(item.ok, JSON.stringify(item));
    }
}

export async function openBrowser() {
    const executablePath = BROWSERS.find((file) => fs.existsSync(file));
    assert.ok(executablePath, 'chromium is missing: apt-get install chromium');
    return chromium.launch({ executablePath, timeout: DEADLINE_MS, args: ['--no-sandbox', '--disable-gpu',
        '--disable-dev-shm-usage'] });
}

// A page of its own context; page.close() through `done` checks that nothing was wrong.
export async function openPage(browser, server, hash = '#/', options = {}) {
    const { allow = [], token, ...rest } = options; // token: of who is signed in
    const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, locale: 'en-GB',
        timezoneId: 'Europe/Berlin', ...rest });
    if (token)
        await context.addInitScript((text) => sessionStorage.setItem('perdura.token', text), token);
    const page = await context.newPage();
    const wrong = [];
    const allowed = (text) => allow.some((pattern) => pattern.test(text));
    page.on('pageerror', (error) => wrong.push(`script error: ${error.stack ?? error.message}`));
    page.on('console', (message) => {
        if (message.type() === 'error' && !allowed(message.text()))
            wrong.push(`console: ${message.text()}`);
    });
    page.on('request', (request) => {
        if (!request.url().startsWith(server.url) && !request.url().startsWith('data:'))
            wrong.push(`foreign request: ${request.url()}`);
    });
    page.on('dialog', (dialog) => { wrong.push('a script dialog'); dialog.dismiss(); });
    page.setDefaultTimeout(DEADLINE_MS);
    await page.goto(server.url + '/' + hash);
    page.done = async () => {
        await context.close();
        assert.deepEqual(wrong, []);
    };
    return page;
}

// Serious and critical findings of axe-core, as lines.
export async function axe(page) {
    const session = await page.context().newCDPSession(page);
    await session.send('Page.setBypassCSP', { enabled: true }).catch(() => {});
    const result = await session.send('Runtime.evaluate', { awaitPromise: true, returnByValue: true,
        expression: `${axeSource};axe.run(document, {resultTypes: ['violations']}).then((found) =>
            found.violations.filter((one) => ['serious', 'critical'].includes(one.impact))
            .map((one) => one.id + ': ' + one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)
                + ' ' + node.any.map((any) => any.message).join(' ')).join(' | ')))` });
    await session.detach();
    assert.ok(!result.exceptionDetails, JSON.stringify(result.exceptionDetails)?.slice(0, 500));
    return result.result.value;
}
