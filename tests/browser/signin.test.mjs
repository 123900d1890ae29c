// D12: who is signed in. The page where one signs in, where the token is kept, what happens when it is no
// longer taken, an open server that is closed, people behind a proxy.
import { after, before, test } from 'node:test';
import * as assert from 'node:assert/strict';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { axe, openBrowser, openPage, Server, until } from './harness.mjs';

const ROOT = 'root-secret-of-the-test';
const REFUSED = { allow: [/40[13]/] }; // the browser writes them to its console
let server, browser;
before(async () => {
    server = await Server.start({ environment: { PERDURA_TOKEN: ROOT } });
    browser = await openBrowser();
});
after(async () => {
    await browser.close();
    await server.remove();
});

const make = (fields) => server.post('/v1/tokens', fields);
const field = (page) => page.getByLabel('Token', { exact: true });
const kept = (page) => page.evaluate(() => [sessionStorage.getItem('perdura.token'), localStorage.getItem('perdura.token')]);
async function signIn(page, token) {
    await field(page).fill(token);
    await page.keyboard.press('Enter');
}

test('a wrong token is refused with what is wrong; the right one is kept for the tab only', async () => {
    const page = await openPage(browser, server, '#/queues', REFUSED);
    await field(page).waitFor();
    assert.equal(await page.evaluate(() => document.activeElement.id), 'token');
    assert.equal(await page.getByRole('navigation').count(), 0); // nothing of the rest is there
    await signIn(page, 'wrong');
    await page.getByText('This token is not valid here').waitFor();
    await signIn(page, 'pdt_0123');
    await page.getByText('This is not a whole token').waitFor();
    await signIn(page, `pdt_0123456789abcdef_${'A'.repeat(43)}`);
    await page.getByText('This token is not valid here').waitFor();
    assert.deepEqual(await kept(page), [null, null]);
    await signIn(page, ROOT);
    await page.getByRole('heading', { name: 'Queues' }).waitFor(); // the page that was asked for
    assert.deepEqual(await kept(page), [ROOT, null]);
    await page.reload();
    await page.getByRole('heading', { name: 'Queues' }).waitFor();
    await page.done();
});

test('kept on this computer it is there in another tab, until one signs out', async () => {
    const made = await make({ name: 'kept', role: 'viewer' });
    const page = await openPage(browser, server, '#/jobs', REFUSED);
    await field(page).fill(made.token);
    await page.getByLabel('Keep me signed in').check();
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Jobs', exact: true }).waitFor();
    assert.deepEqual(await kept(page), [null, made.token]);
    const other = await page.context().newPage();
    await other.goto(`${server.url}/#/queues`);
    await other.getByRole('heading', { name: 'Queues' }).waitFor();
    await page.getByRole('button', { name: 'Signed in: kept' }).click();
    const dialog = page.getByRole('dialog', { name: 'Who is signed in' });
    for (const words of ['an API token', 'default', 'tasks:read', 'kept in this browser'])
        await dialog.getByText(words, { exact: false }).first().waitFor();
    await dialog.getByRole('button', { name: 'Sign out' }).click();
    await field(page).waitFor();
    assert.equal(await page.getByRole('alert').innerText(), ''); // nothing went wrong
    assert.deepEqual(await kept(page), [null, null]);
    await field(other).waitFor(); // without a reload
    await page.done();
});

test('revoked while the page is open: the reason, and back to where one was', async () => {
    const made = await make({ name: 'short', role: 'viewer' });
    const page = await openPage(browser, server, '#/workers', REFUSED);
    await signIn(page, made.token);
    await page.getByRole('heading', { name: 'Workers' }).waitFor();
    await server.api('DELETE', `/v1/tokens/${made.id}`);
    await page.getByText('Your token was revoked').waitFor();
    assert.equal(await page.getByRole('heading', { name: 'Workers' }).count(), 0); // and nothing to read on
    assert.deepEqual(await kept(page), [null, null]);
    await signIn(page, ROOT);
    await page.getByRole('heading', { name: 'Workers' }).waitFor();
    await page.done();
});

test('expired and replaced tokens have reasons of their own; a stream notices on a page that asks for nothing', async () => {
    const soon = await make({ name: 'soon', role: 'viewer', expires_at: new Date(Date.now() + 6000).toISOString() });
    const task = await server.enqueue('t');
    const page = await openPage(browser, server, `#/tasks/${task.id}`, REFUSED);
    await signIn(page, soon.token);
    await page.getByRole('heading', { name: 't', exact: true }).waitFor();
    await page.getByRole('button', { name: 'Signed in: soon' }).getByText('ends').waitFor();
    await page.getByText('Your token has expired').waitFor();
    const turned = await make({ name: 'turned', role: 'viewer' });
    await signIn(page, turned.token);
    await page.getByRole('heading', { name: 't', exact: true }).waitFor();
    const fresh = await server.post(`/v1/tokens/${turned.id}:rotate`, {});
    await page.getByText('Your token is no longer valid').waitFor();
    await signIn(page, fresh.token);
    await page.getByRole('heading', { name: 't', exact: true }).waitFor();
    await page.done();
});

test('the page where one signs in: with the keyboard, a screen reader, a phone, in the dark, in French', async () => {
    for (const options of [{ colorScheme: 'light' }, { colorScheme: 'dark' },
        { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true }]) {
        const page = await openPage(browser, server, '#/', { ...REFUSED, ...options });
        await field(page).waitFor();
        await page.getByText('I have no token').click();
        await page.getByText('perdura token create').waitFor();
        assert.deepEqual(await axe(page), []);
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
        await page.done();
    }
    const page = await openPage(browser, server, '#/', { ...REFUSED, locale: 'fr-FR' });
    await page.getByLabel('Jeton', { exact: true }).fill('wrong');
    await page.keyboard.press('Enter');
    await page.getByText('Ce jeton n’est pas valable ici').waitFor();
    await page.done();
});

test('the first token closes an open server and keeps its maker signed in', async () => {
    const open = await Server.start();
    try {
        const page = await openPage(browser, open, '#/tokens', REFUSED);
        await page.getByRole('button', { name: 'Signed in: Not signed in' }).waitFor();
        await page.getByText('This server is open to every user').waitFor();
        await page.getByRole('button', { name: 'New token' }).click();
        await page.getByLabel('Name', { exact: true }).fill('ops');
        await page.keyboard.press('Enter'); // role admin, never expires
        await page.getByText('This tab is signed in with it now').waitFor();
        const token = await page.locator('dialog code').first().innerText();
        assert.equal((await open.fetch('GET', '/v1/queues')).status, 401);
        assert.deepEqual(await kept(page), [token, null]);
        await page.getByRole('button', { name: 'Done' }).click();
        await page.getByRole('button', { name: 'Close', exact: true }).last().click(); // it was not copied
        await page.getByRole('dialog').waitFor({ state: 'detached' });
        await page.getByRole('button', { name: 'Signed in: ops' }).waitFor();
        const stranger = await openPage(browser, open, '#/', REFUSED);
        await field(stranger).waitFor();
        await stranger.done();
        await page.done();
    } finally {
        await open.remove();
    }
});

test('whom a proxy names is signed in without a token, and told when no group has rights', async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'perdura-browser-'));
    const file = path.join(folder, 'perdura.yaml');
    fs.writeFileSync(file, ['access:', '  proxy:', '    from: [127.0.0.1]', '    user_header: X-Forwarded-Email',
        '    groups_header: X-Forwarded-Groups', '    groups:', '      staff: [viewer]', ''].join('\n'));
    const behind = await Server.start({ arguments: ['--config', file] });
    try {
        const named = (groups) => ({ ...REFUSED, extraHTTPHeaders: { 'X-Forwarded-Email': 'ada@example.org',
            'X-Forwarded-Groups': groups } });
        const page = await openPage(browser, behind, '#/', named('staff'));
        await page.getByRole('heading', { name: 'Overview' }).waitFor();
        await page.getByRole('button', { name: 'Signed in: ada@example.org' }).click();
        await page.getByText('the sign-in of your proxy').waitFor();
        assert.equal(await page.getByRole('button', { name: 'Sign out' }).count(), 0); // the proxy does that
        await page.keyboard.press('Escape');
        await page.context().setExtraHTTPHeaders({}); // its session has ended
        await page.getByText('Your session has ended').waitFor();
        await page.done();
        const guest = await openPage(browser, behind, '#/', named('guests'));
        await guest.getByText('no group of', { exact: false }).waitFor();
        await guest.done();
        await until(async () => (await behind.fetch('GET', '/v1/whoami')).status === 401, 'a stranger refused');
    } finally {
        await behind.remove();
        fs.rmSync(folder, { recursive: true, force: true });
    }
});
