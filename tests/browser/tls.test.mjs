// The dashboard over TLS (D12): it loads, acts and follows the stream, with a certificate that was
// made for the test.
import { after, before, test } from 'node:test';
import * as assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { openBrowser, openPage, Server, until } from './harness.mjs';

let server, browser, folder;
before(async () => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'perdura-browser-'));
    const [cert, key] = ['cert.pem', 'key.pem'].map((name) => path.join(folder, name));
    execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes',
        '-keyout', key, '-out', cert, '-subj', '/CN=test', '-days', '2', '-addext',
        'subjectAltName=IP:127.0.0.1'], { stdio: 'ignore' });
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'; // only of this process's own requests
    server = await Server.start({ arguments: ['--tls-cert', cert, '--tls-key', key] });
    browser = await openBrowser();
});
after(async () => {
    await browser.close();
    await server.remove();
    fs.rmSync(folder, { recursive: true, force: true });
});

test('the dashboard shows what happens while it is open, and acts', async () => {
    assert.match(server.url, /^https:/);
    const page = await openPage(browser, server, '#/tasks', { ignoreHTTPSErrors: true });
    await page.locator('.page h1').first().waitFor();
    await server.enqueue('over:tls', { name: 'sent over TLS' });
    await page.getByText('1 new task').click(); // told by the stream, without a reload
    await page.getByText('sent over TLS').first().waitFor();
    await page.evaluate(() => { location.hash = '#/queues'; });
    await page.getByRole('button', { name: 'Pause: default' }).click();
    await until(async () => (await server.get('/v1/queues/default')).paused, 'the queue being paused');
    await page.done();
});
