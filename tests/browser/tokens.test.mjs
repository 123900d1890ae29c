// D12: the pages for tokens, the audit trail and keys, by mouse and by keyboard, with hostile words, for a
// screen reader, on a phone.
import { after, before, test } from 'node:test';
import * as assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { axe, openBrowser, openPage, Server, until } from './harness.mjs';

const ROOT = 'root-secret-of-the-test';
const EVIL = ['<script>window.hit=1</script>', '<img src=x onerror="window.hit=1">', '"><svg/onload=window.hit=1>',
    'javascript:window.hit=1', '${window.hit=1}', '__proto__', 'constructor'];
const program = path.join(process.env.PERDURA_BUILD ?? 'build', 'perdura');
let server, browser, folder, configure;

before(async () => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'perdura-browser-'));
    const file = path.join(folder, 'perdura.yaml');
    for (const id of ['k1', 'k2'])
        execFileSync(program, ['key', 'add', id, '--file', path.join(folder, `${id}.key`)], { stdio: 'ignore' });
    configure = (current, ...ids) => fs.writeFileSync(file, ['encryption:', ...(current ? [`  current: ${current}`] : []),
        '  per_user: true', '  keys:', ...ids.map((id) => `    - {id: ${id}, file: ${path.join(folder, `${id}.key`)}}`), ''].join('\n'));
    configure('k1', 'k1');
    server = await Server.start({ environment: { PERDURA_TOKEN: ROOT }, arguments: ['--config', file] });
    browser = await openBrowser();
});
after(async () => {
    await browser?.close();
    await server.remove();
    fs.rmSync(folder, { recursive: true, force: true });
});

const open = (hash, options) => openPage(browser, server, hash, { token: ROOT, allow: [/40[13]/], ...options });
const tokens = async () => (await server.get('/v1/tokens')).items;
const named = async (name) => (await tokens()).find((one) => one.name === name);
const secretOf = (page) => page.locator('dialog code').first().innerText();
const closeDialog = (page) => page.getByRole('dialog').waitFor({ state: 'detached' });

test('by mouse: a token is made with its limits, shown once and copied, rotated with overlap, revoked', async () => {
    const page = await open('#/tokens');
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.getByRole('button', { name: 'New token' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('textbox', { name: 'Name', exact: true }).fill('media-1');
    await dialog.getByRole('combobox', { name: 'Role' }).selectOption('worker');
    await dialog.getByRole('textbox', { name: 'Queues' }).fill('media, mail *');
    await dialog.getByRole('textbox', { name: 'Types' }).fill('image:*');
    await dialog.getByRole('textbox', { name: 'Categories' }).fill('reports');
    await dialog.getByRole('textbox', { name: 'User', exact: true }).fill('ada');
    await dialog.getByLabel('Requests per second').fill('100');
    await dialog.getByLabel('At once after a pause').fill('20');
    await dialog.getByRole('combobox', { name: 'Expires' }).selectOption('30');
    await dialog.getByRole('button', { name: 'Make' }).click();
    await page.getByText('Copy it now').waitFor();
    const secret = await secretOf(page);
    assert.match(secret, /^pdt_[0-9a-f]{16}_[\w-]{43}$/);
    await page.getByText(`perdura worker --server ${server.url} --queues media --config`, { exact: false }).waitFor();
    await page.getByRole('button', { name: 'Copy the token' }).click();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), secret);
    await page.getByRole('button', { name: 'Done' }).click(); // it was copied: no question
    await closeDialog(page);
    const made = await named('media-1');
    assert.deepEqual([made.scopes, made.queues, made.types, made.categories, made.user_id],
        [['work'], ['media', 'mail *'], ['image:*'], ['reports'], 'ada']);
    assert.deepEqual([made.rate.count, made.rate.per_ms, made.rate.burst], [100, 1000, 20]);
    assert.ok(Math.abs(Date.parse(made.expires_at) - Date.now() - 30 * 86400e3) < 3600e3);
    const row = page.getByRole('row', { name: /media-1/ });
    for (const words of ['worker', 'media, mail *', 'image:*', 'reports', 'ada', 'never used'])
        await row.getByText(words, { exact: false }).first().waitFor();
    assert.ok(!(await page.content()).includes(secret)); // nowhere any more
    await row.getByRole('button', { name: 'Rotate: media-1' }).click();
    await page.getByRole('dialog').getByRole('combobox').selectOption(String(3600e3));
    await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click();
    await page.getByText('Copy it now').waitFor();
    const next = await secretOf(page);
    const who = async (token) => (await server.fetch('GET', '/v1/whoami', undefined, token)).status;
    assert.deepEqual([await who(secret), await who(next)], [200, 200]); // both for an hour
    await page.keyboard.press('Escape');
    await page.getByText('You have not copied it').waitFor();
    await page.getByRole('button', { name: 'Back to it' }).click();
    assert.equal(await secretOf(page), next);
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').getByRole('button', { name: 'Close', exact: true }).last().click();
    await closeDialog(page);
    await row.getByText('old secret until').waitFor();
    await row.getByRole('button', { name: 'Revoke: media-1' }).click();
    await page.getByRole('dialog', { name: 'Revoke media-1?' }).getByRole('button', { name: 'Revoke' }).click();
    await row.waitFor({ state: 'detached' });
    await until(async () => await who(next) === 401, 'revoked');
    await page.getByLabel('Show 1 that has ended').check();
    await row.getByText('revoked').first().waitFor();
    await page.done();
});

test('by keyboard: scopes are chosen, what is typed is not lost, and the server\'s words are at the field', async () => {
    const page = await open('#/');
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.keyboard.press('g');
    await page.keyboard.press('k');
    await page.getByRole('heading', { name: 'Tokens', level: 1 }).waitFor();
    const focused = () => page.evaluate(() => document.activeElement.textContent?.trim().slice(0, 40)
        || document.activeElement.labels?.[0]?.textContent || '');
    for (let at = 0; at < 40 && await focused() !== 'New token'; at++)
        await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    assert.equal(await focused(), 'Name'); // the first field
    await page.keyboard.press('Enter');
    await page.getByText('Fill in this field').waitFor();
    await page.keyboard.type('by-key');
    await page.keyboard.press('Tab');
    await page.keyboard.press('End'); // a choice of scopes
    await page.keyboard.press('Tab');
    for (let at = 0; at < 20 && !(await focused()).includes('tasks:control'); at++)
        await page.keyboard.press('Tab');
    await page.keyboard.press('Space');
    await page.keyboard.press('Escape');
    await page.getByText('You have unsaved changes').waitFor();
    await page.keyboard.press('Enter'); // keep editing
    await page.getByText('You have unsaved changes').waitFor({ state: 'detached' });
    await page.keyboard.press('Enter');
    await page.getByText('Copy it now').waitFor();
    const secret = await secretOf(page);
    assert.equal(await focused(), 'Done');
    await page.keyboard.press('Enter');
    await page.getByText('You have not copied it').waitFor();
    await page.keyboard.press('Escape');
    await closeDialog(page);
    assert.deepEqual((await named('by-key')).scopes, ['tasks:control']);
    assert.equal((await server.fetch('GET', '/v1/whoami', undefined, secret)).status, 200);
    await page.getByRole('link', { name: 'by-key' }).waitFor();
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press('j'); // to the row
    for (let at = 0; at < 6 && !(await page.evaluate(() => document.activeElement.getAttribute('aria-label')) ?? '').startsWith('Revoke'); at++)
        await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: /^Revoke/ }).waitFor();
    for (let at = 0; at < 6 && await focused() !== 'Revoke'; at++)
        await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await until(async () => (await named('by-key')).status === 'revoked', 'revoked');
    await page.done();
});

test('a maker gives no more than it has: it is not offered, and a later end is refused at the field', async () => {
    const maker = await server.post('/v1/tokens', { name: 'maker', scopes: ['access:write', 'tasks:read'],
        expires_at: new Date(Date.now() + 3 * 86400e3).toISOString() });
    const page = await open('#/tokens', { token: maker.token, allow: [/403/] });
    await page.getByRole('button', { name: 'New token' }).click();
    const options = await page.getByRole('dialog').getByRole('combobox', { name: 'Role' }).locator('option').allInnerTexts();
    assert.deepEqual(options, ['a choice of scopes']);
    assert.deepEqual(await page.getByRole('dialog').locator('.many code').allInnerTexts(), ['tasks:read', 'access:write']);
    await page.getByRole('dialog').getByRole('textbox', { name: 'Name', exact: true }).fill('child');
    await page.getByRole('dialog').getByRole('checkbox', { name: 'tasks:read' }).check();
    await page.getByRole('button', { name: 'Make', exact: true }).click();
    await page.getByText('cannot outlive your own credential').waitFor();
    assert.equal(await page.evaluate(() => document.activeElement.tagName), 'SELECT'); // Expires
    await page.done();
});

test('after rotating one\'s own token the tab has the new one; revoking it signs out', async () => {
    const own = await server.post('/v1/tokens', { name: 'own', role: 'admin' });
    const page = await openPage(browser, server, '#/tokens', { allow: [/401/] });
    await page.getByLabel('Token', { exact: true }).fill(own.token);
    await page.keyboard.press('Enter');
    const row = page.getByRole('row', { name: /^own/ });
    await row.getByText('yours').waitFor();
    await row.getByRole('button', { name: 'Rotate: own' }).click();
    await page.getByRole('dialog').getByRole('combobox').selectOption('0');
    await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click();
    await page.getByText('This tab is signed in with it now').waitFor();
    const next = await secretOf(page);
    await until(async () => (await server.fetch('GET', '/v1/whoami', undefined, own.token)).status === 401, 'the old one refused');
    await page.waitForTimeout(1500);
    assert.equal(await page.evaluate(() => sessionStorage.getItem('perdura.token')), next);
    await page.keyboard.press('Escape');
    await page.keyboard.press('Escape');
    await closeDialog(page);
    await row.getByRole('button', { name: 'Revoke: own' }).click();
    await page.getByText('you will be signed out').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await page.getByText('Your token was revoked').waitFor();
    await page.done();
});

test('the audit trail: who, before and after, refusals, filters, pages, links to the objects', async () => {
    await server.enqueue('t', { queue: 'audited' });
    await server.post('/v1/queues/audited:pause');
    await server.api('PATCH', '/v1/queues/audited', { concurrency: 7 });
    const job = await server.post('/v1/jobs', { name: 'audited:job' });
    const weak = await server.post('/v1/tokens', { name: 'weak', role: 'viewer' });
    assert.equal((await server.fetch('POST', '/v1/queues/audited:resume', {}, weak.token)).status, 403);
    for (let at = 0; at < 55; at++)
        await server.api('PATCH', `/v1/jobs/${job.id}`, { description: `number ${at}` });
    const page = await open('#/audit');
    const rows = page.locator('tbody tr');
    await until(async () => await rows.count() === 50, 'a page');
    await rows.first().getByText('job.update').waitFor();
    assert.match(await rows.first().innerText(), /before:\s+number 53[^]*after:\s+number 54/);
    await page.getByRole('button', { name: 'Next' }).click();
    await page.getByText('queue.pause').first().waitFor();
    await page.getByRole('button', { name: 'Previous' }).click();
    await page.getByLabel('Action').fill('queue');
    await page.keyboard.press('Enter');
    await until(async () => (await rows.allInnerTexts()).every((text) => text.includes('queue.')), 'the filter');
    assert.match(page.url(), /action=queue/);
    await page.getByRole('row', { name: /concurrency/ }).getByRole('link', { name: 'queue audited' }).click();
    await page.getByRole('heading', { name: 'Tasks' }).waitFor();
    assert.match(page.url(), /queue=audited/);
    await page.goBack();
    await page.getByRole('button', { name: 'Clear' }).click();
    await page.getByLabel('Outcome').selectOption('refused');
    await until(async () => await page.getByText('token:weak').count() > 0, 'the refusal, gathered for up to a minute');
    await page.getByRole('button', { name: 'token:weak' }).first().click();
    await until(async () => /principal=token%3Aweak/.test(page.url()), 'only this one');
    await page.getByRole('button', { name: 'Clear' }).click();
    await page.getByLabel('From').fill('2099-01-01T00:00:01');
    await page.getByRole('button', { name: 'Filter' }).click();
    await page.getByText('Nothing on record').waitFor();
    await page.done();
});

test('keys of an encrypted store: their state, a rotation, a destruction, and a lock in place of what is not open', async () => {
    const clear = { encrypt: true, queue: 'sealed', max_retries: 0, user_id: 'grace', payload: { secret: 'open sesame' } };
    const task = await server.enqueue('sealed', clear);
    await server.worker('w', { queues: ['sealed'] });
    const [held] = await server.claim('w');
    await server.report('w', [held, 'start'], [held, 'log', { level: 'INFO', message: 'open sesame' }],
        [held, 'checkpoint', { name: 'c', progress: 5, data: { x: 'open sesame' } }],
        [held, 'fail', { error: 'open sesame failed', details: { a: 1 } }]);
    await server.enqueue('sealed', { ...clear, user_id: 'ada' });
    const part = await server.enqueue('parts', { encrypt_fields: ['/card'], payload: { card: '4111', shown: 'shop' } });
    let page = await open('#/keys');
    await page.getByText('can encrypt').waitFor();
    await page.getByText('one per user').waitFor();
    await page.getByText('All data keys are wrapped with k1').waitFor();
    assert.equal(await page.getByRole('button', { name: 'Rotate…' }).count(), 0); // nothing to do
    await page.context().close();

    await server.stop();
    configure('k2', 'k1', 'k2');
    await server.restart();
    page = await open('#/keys');
    await page.getByRole('button', { name: 'Rotate…' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click();
    await page.getByText('0 data keys are left').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Close', exact: true }).last().click();
    await page.getByText('All data keys are wrapped with k2').waitFor();
    assert.equal((await server.get('/v1/keys')).left, 0);
    await page.getByRole('button', { name: 'Destroy…' }).click();
    await page.getByLabel('User').fill('ada');
    await page.getByRole('dialog').getByRole('button', { name: 'Destroy' }).click();
    await page.getByText('Type ada to show that you mean it').waitFor();
    assert.equal((await server.get('/v1/keys')).data_keys.reduce((sum, one) => sum + one.destroyed, 0), 0);
    await page.getByLabel('Type ada again').fill('ada');
    await page.keyboard.press('Enter');
    await page.getByText('1 data key destroyed').waitFor();
    const gone = (await server.get('/v1/tasks?user_id=ada')).items[0];
    await until(async () => (await server.get(`/v1/tasks/${gone.id}`)).payload.destroyed, 'destroyed');
    await page.evaluate((hash) => { location.hash = hash; }, `#/tasks/${gone.id}?tab=data`);
    await page.getByText('its key was destroyed').first().waitFor();
    await page.context().close();

    await server.stop();
    configure(null, 'k1'); // k2 is lost
    await server.restart();
    page = await open('#/keys');
    await page.getByText('This server lacks the key').first().waitFor();
    const shown = [];
    for (const tab of ['timeline', 'logs', 'data', 'checkpoints']) {
        await page.evaluate((hash) => { location.hash = hash; }, `#/tasks/${task.id}?tab=${tab}`);
        await page.getByRole('heading', { name: 'sealed' }).waitFor();
        await page.locator('.tab-panel').getByText('Encrypted; this server lacks the key').first().waitFor();
        shown.push(await page.locator('main').innerText());
    }
    await page.evaluate((hash) => { location.hash = hash; }, `#/tasks/${part.id}?tab=data`);
    await page.getByText('"shop"').waitFor();
    await page.locator('.json .sealed').waitFor(); // the member alone
    for (const hash of ['#/tasks', '#/', '#/recovery?tab=dead']) {
        await page.evaluate((next) => { location.hash = next; }, hash);
        await page.getByText('Encrypted; this server lacks the key').first().waitFor();
        shown.push(await page.locator('main').innerText());
    }
    assert.ok(shown.every((text) => !/sesame|\[object/.test(text)));
    await page.done();
    await server.stop();
    configure('k2', 'k1', 'k2');
    await server.restart();
});

test('hostile words in every field of tokens and of the audit trail are words', async () => {
    for (const words of EVIL) {
        await server.post('/v1/tokens', { name: words, role: 'viewer', user_id: words, queues: [words], types: [words],
            categories: [words] });
        const job = await server.post('/v1/jobs', { name: words, description: words });
        await server.api('PATCH', `/v1/jobs/${job.id}`, { description: `${words} ${EVIL[0]}` });
        await server.post('/v1/tasks', { type: 't', queue: words.replace(/[/"]/g, '') });
        await server.fetch('POST', '/v1/jobs', {}, `wrong ${words}`);
    }
    const signed = await server.post('/v1/tokens', { name: EVIL[1], role: 'admin' });
    const page = await open('#/tokens', { token: signed.token });
    await page.evaluate(() => {
        window.hit = 0;
        window.breaches = [];
        addEventListener('securitypolicyviolation', (event) => window.breaches.push(event.violatedDirective));
    });
    for (const hash of ['#/tokens', '#/tokens?show=all', '#/audit', `#/audit?principal=${encodeURIComponent(EVIL[1])}`,
        `#/audit?action=${encodeURIComponent(EVIL[2])}&object_id=${encodeURIComponent(EVIL[0])}&object_kind=__proto__`, '#/keys',
        '#/audit?after=nonsense']) {
        await page.evaluate((next) => { location.hash = next; }, hash);
        await page.waitForTimeout(400);
        await page.locator('.page h1').first().waitFor();
        assert.deepEqual(await page.evaluate(() => [window.hit, window.breaches]), [0, []], hash);
        assert.equal(await page.locator('main script, main img, a[href^="javascript"]').count(), 0, hash);
    }
    await page.evaluate(() => { location.hash = '#/tokens'; });
    await page.getByText(EVIL[1], { exact: true }).last().waitFor();
    await page.getByRole('button', { name: `Rotate: ${EVIL[2]}` }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click();
    await page.getByText('Copy it now').waitFor();
    await page.getByRole('dialog').getByText(EVIL[2], { exact: false }).waitFor();
    assert.deepEqual(await page.evaluate(() => [window.hit, window.breaches]), [0, []]);
    await page.context().close();
});

test('axe-core finds nothing serious, and nothing is wider than a phone', async () => {
    const looks = [{ colorScheme: 'light' }, { colorScheme: 'dark' },
        { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true }];
    for (const options of looks) {
        const page = await open('#/tokens', options);
        const found = [];
        const check = async (what) => {
            await page.waitForTimeout(300);
            found.push(...(await axe(page)).map((line) => `${what} ${line}`));
            const wide = await page.evaluate(() => [document.documentElement.scrollWidth - innerWidth,
                ...[...document.querySelectorAll('dialog')].map((one) => one.scrollWidth - one.clientWidth)]);
            assert.ok(wide.every((one) => one <= 0), `${what} is too wide: ${wide}`);
        };
        for (const hash of ['#/tokens?show=all', '#/audit', '#/keys']) {
            await page.evaluate((next) => { location.hash = next; }, hash);
            await page.locator('.page h1').first().waitFor();
            await check(hash);
        }
        await page.evaluate(() => { location.hash = '#/tokens'; });
        await page.getByRole('button', { name: 'New token' }).click();
        await page.getByRole('combobox', { name: 'Role' }).selectOption('own');
        await check('the form');
        await page.keyboard.press('Escape');
        await page.getByRole('button', { name: 'Discard' }).click();
        await page.getByRole('button', { name: /^Signed in/ }).click();
        await check('who');
        if (options.isMobile) { // the pages that the lower edge has no room for
            await page.getByRole('dialog').getByRole('link', { name: 'Audit' }).click();
            await page.getByRole('heading', { name: 'Audit', level: 1 }).waitFor();
        }
        assert.deepEqual(found, []);
        await page.done();
    }
});
