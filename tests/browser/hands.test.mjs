// What hands do: keys from the first moment, dialogs that take what is typed, forms that say what is
// wrong where it can be seen, a search that uses every word, previews that tell the whole date.
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
const button = (name, inside = page) => inside.getByRole('button', { name, exact: true });
const press = async (...keys) => { for (const key of keys) await page.keyboard.press(key); };
const focused = (what) => page.evaluate((name) => document.activeElement[name], what);
const rowNames = () => page.locator('tbody tr td.main a').allInnerTexts();

test('j, k, x and Enter work as soon as the list is there', async () => {
    await server.post('/v1/tasks', ['one', 'two', 'three'].map((name) => ({ type: 'row', queue: 'rows', name })));
    await open('#/tasks?queue=rows');
    await until(async () => (await rowNames()).length === 3, '3 rows');
    const names = await rowNames();
    await press('j');
    assert.equal(await focused('textContent'), names[0]);
    await press('j', 'j', 'k', 'x');
    assert.equal(await focused('textContent'), names[1]);
    await page.getByText('1 selected').waitFor();
    assert.ok(await page.locator('tbody tr').nth(1).locator('input').isChecked());
    await press('Enter');
    await page.getByRole('heading', { name: names[1], level: 1 }).waitFor();
    await page.goBack();
    await until(async () => (await rowNames()).length === 3, '3 rows');
    await press('x');
    await page.getByText('1 selected').waitFor();
    await page.getByRole('button', { name: 'Cancel 1' }).waitFor();
});

test('rows of other lists are reached by the same keys, also with the focus on a box', async () => {
    await server.post('/v1/jobs', { name: 'by:keys', description: 'reached by keys' });
    await open('#/jobs');
    await page.getByRole('link', { name: 'by:keys' }).waitFor();
    await press('j');
    assert.equal(await focused('tagName'), 'A');
    await page.done();
    await open('#/tasks?queue=rows');
    await page.locator('tbody input').nth(1).check();
    await press('k');
    assert.equal(await focused('textContent'), (await rowNames())[0]);
});

test('a dialog takes what is typed, and Enter saves it', async () => {
    const { id } = await server.enqueue('typed', { queue: 'typed' });
    await open(`#/tasks/${id}`);
    await button('Priority').click();
    await page.getByRole('dialog').waitFor();
    await page.keyboard.type('42');
    await press('Enter');
    await until(async () => (await server.get(`/v1/tasks/${id}`)).priority === 42, 'the priority');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.done();
    await open('#/queues');
    await button('Limits: typed').click();
    await page.getByRole('dialog').waitFor();
    await page.keyboard.type('3');
    await press('Enter');
    await until(async () => (await server.get('/v1/queues/typed')).concurrency === 3, 'the limit');
    await page.done();
    await open('#/jobs');
    await button('New job').click();
    await page.getByRole('dialog').waitFor();
    await page.keyboard.type('typed:job');
    await press('Enter');
    await page.getByRole('link', { name: 'typed:job' }).waitFor();
});

test('a note is written, changed and taken away with keys alone, also on a task that has ended', async () => {
    const { id } = await server.enqueue('noted', { queue: 'noted' });
    await server.post(`/v1/tasks/${id}:cancel`);
    await open(`#/tasks/${id}`, { allow: [/422/] });
    const edit = async (...keys) => {
        await button('Edit').focus();
        await press('Enter');
        await page.getByRole('dialog').waitFor();
        await press('ControlOrMeta+a', ...keys, 'Enter');
        await page.getByRole('dialog').waitFor({ state: 'detached' });
    };
    const shown = page.locator('.remark');
    await edit(...'asked twice');
    await shown.getByText('asked twice').waitFor();
    assert.equal((await server.get(`/v1/tasks/${id}`)).note, 'asked twice');
    await page.locator('.timeline').getByText('note: asked twice').waitFor();
    await edit(...'solved');
    await shown.getByText('solved').waitFor();
    await edit('Delete');
    await shown.waitFor({ state: 'detached' });
    assert.equal((await server.get(`/v1/tasks/${id}`)).note, null);
    await button('Edit').click();
    await page.getByLabel('Note').fill('x'.repeat(1025));
    await press('Enter');
    await page.getByText('at most 1024 are allowed').waitFor();
    assert.equal(await focused('value'), 'x'.repeat(1025));
});

test('a note has its label in every language', async () => {
    const { id } = await server.enqueue('noted', { note: 'lu' });
    for (const [locale, label] of [['en-GB', 'Note'], ['fr-FR', 'Note'], ['pt-PT', 'Nota']]) {
        await open(`#/tasks/${id}`, { locale });
        await page.locator('.remark', { hasText: `${label} lu` }).waitFor();
        await page.done();
    }
});

test('what was typed is not lost by Escape, by × or by a click beside the dialog without a question', async () => {
    await open('#/jobs');
    await button('New job').click();
    await page.getByRole('dialog').waitFor();
    await page.keyboard.type('half:done');
    const name = page.getByLabel('Job', { exact: true });
    for (const leave of [() => press('Escape'), () => button('Close').click(), () => button('Back').click(),
        () => page.mouse.click(5, 5)]) {
        await leave();
        await page.getByText('You have unsaved changes').waitFor();
        await button('Keep editing').click();
        assert.equal(await name.inputValue(), 'half:done');
    }
    await press('Escape', 'Escape', 'Escape');
    await page.getByText('You have unsaved changes').waitFor();
    await button('Discard').click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await button('New job').click(); // with nothing typed it just goes
    await name.waitFor();
    await press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
});

test('a refused form shows and focuses what is wrong, wherever it was scrolled to', async () => {
    await open('#/jobs', { viewport: { width: 700, height: 420 }, allow: [/422/] });
    await button('New job').click();
    const name = page.getByLabel('Job', { exact: true });
    await page.getByLabel('Active').focus();
    await button('Save').click();
    await page.getByText('Fill in this field').waitFor();
    const seen = (place) => until(() => place.evaluate((at) => {
        const box = at.getBoundingClientRect();
        return at === document.activeElement && box.top >= 0 && box.bottom <= innerHeight;
    }), 'the field in sight');
    await seen(name);
    await name.fill('refused:here');
    await page.getByLabel('Retries').fill('-5');
    await button('Save').click();
    await seen(page.getByLabel('Retries'));
    await page.done();
    await open('#/jobs?tab=categories', { viewport: { width: 700, height: 420 }, allow: [/409|422/] });
    await button('New category').click();
    await page.getByLabel('Category', { exact: true }).fill('general'); // which there is
    await page.getByLabel('Active').focus();
    await button('Save').click();
    await seen(page.locator('[aria-invalid=true], .problem').first());
});

test('the search uses every word, and finds names, parts of types and tags', async () => {
    await server.post('/v1/tasks', [{ type: 'invoice:send', name: 'Invoice of March', queue: 'words' },
        { type: 'invoice:send', name: 'Invoice of April', queue: 'words', tags: ['paper'] },
        { type: 'sweep:march', queue: 'words' }]);
    await open('#/');
    const search = page.getByRole('searchbox', { name: 'Find tasks' });
    for (const [words, found] of [['march invoice', ['Invoice of March']], ['invoice', ['Invoice of April',
        'Invoice of March']], ['"of april"', ['Invoice of April']], ['queue:words march', ['sweep:march',
        'Invoice of March']], ['paper invoice status:pending', ['Invoice of April']]]) {
        await search.fill(words);
        await press('Enter');
        await until(async () => JSON.stringify(await rowNames()) === JSON.stringify(found), words);
    }
    await search.fill('invoice sweep');
    await press('Enter');
    await page.getByText('No tasks here').waitFor();
    assert.equal(await page.getByLabel('Filter', { exact: true }).inputValue(), 'invoice sweep');
});

test('a job that fires once a week is seen beside one that fires every minute', async () => {
    const often = await server.post('/v1/jobs', { name: 'every:minute' });
    const rare = await server.post('/v1/jobs', { name: 'once:a:week' });
    await server.post(`/v1/jobs/${often.id}/schedules`, { cron_expression: '* * * * *' });
    await server.post(`/v1/jobs/${rare.id}/schedules`, { cron_expression: '30 12 * * WED' });
    await open('#/schedules');
    const cell = page.locator('.heats .heat.rare');
    await cell.waitFor();
    assert.equal(await cell.count(), 1);
    assert.match(await cell.getAttribute('aria-label'), /Wednesday.*61 times.*once:a:week/);
    assert.ok(await page.locator('.heats .heat-0.steady').count() > 100); // the rest has no colour
    assert.match(await page.locator('.heat-key').innerText(), /every:minute \(60\)/);
    await cell.click();
    const lines = page.locator('.fires li');
    await lines.first().waitFor();
    assert.match(await lines.first().innerText(), /once:a:week/);
    assert.match(await lines.nth(1).innerText(), /every:minute × 60/);
    await server.post(`/v1/jobs/${often.id}/schedules`, { interval_seconds: 1 }); // too many to be listed one by one
    await server.post(`/v1/jobs/${rare.id}/schedules`, { cron_expression: '* 8-18 * * *', timezone: 'Europe/Berlin' });
    await page.reload();
    await page.locator('.heat-key', { hasText: /every:minute \(3,6\d\d/ }).waitFor();
    assert.equal(await page.locator('.heats td:nth-child(4) .heat-0').count(), 7); // nothing else at two at night
    assert.ok(await page.locator('.heats .heat-3').count() >= 6 * 11); // ten to ninety-nine by day
});

test('a preview tells the year, the zone and when its clocks change', async () => {
    await server.post('/v1/jobs', { name: 'previewed' });
    await open('#/schedules', { allow: [/422/] });
    await button('New schedule').click();
    await page.getByLabel('Cron expression').fill('30 2 29 2 *');
    await page.getByLabel('Time zone').fill('America/New_York');
    const preview = page.locator('.preview');
    await preview.getByText('Times in America/New_York').waitFor();
    assert.match(await preview.locator('li').first().innerText(), /29 Feb 20\d\d, 02:30[^]* 08:30 here/);
    assert.match(await preview.innerText(), /clocks there go (forward|back) by 60 minutes on/);
    await page.getByLabel('Time zone').fill('UTC');
    await preview.getByText('Times in UTC').waitFor();
    assert.doesNotMatch(await preview.innerText(), /clocks there/);
});

test('the form of a job tells which values are its own, and where the others come from', async () => {
    const job = await server.post('/v1/jobs', { name: 'inherits:most', category: 'notifications', max_retries: 9 });
    const category = await server.get('/v1/categories/notifications');
    await open('#/jobs');
    await button('Edit: inherits:most').click();
    const time = page.getByLabel('Timeout in seconds');
    assert.equal(await page.getByLabel('Retries').inputValue(), '9');
    assert.equal(await time.inputValue(), '');
    assert.equal(await time.getAttribute('placeholder'), String(category.default_timeout));
    await page.getByText(`empty = ${category.default_timeout}, from its category`).first().waitFor();
    await page.getByLabel('Category', { exact: true }).selectOption('general');
    await page.getByText('from its category general').first().waitFor();
    await page.getByLabel('Category', { exact: true }).selectOption('notifications');
    await page.getByLabel('Retries').fill(''); // from now on the category's
    await button('Save').click();
    await until(async () => (await server.get(`/v1/jobs/${job.id}`)).max_retries === category.default_max_retries,
        'the retries of the category');
});
