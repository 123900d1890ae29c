// What a user who sees the dashboard for the first time wants to know: what runs, what failed and
// why, what will run tonight, why a task waits; and the order of lists, what jobs depend on,
// patterns without JSON.
import { after, afterEach, before, test } from 'node:test';
import * as assert from 'node:assert/strict';
import { openBrowser, openPage, Server, until } from './harness.mjs';
import { addPlans, addWorkflow } from './busy.mjs';

let server, browser, page, plans;
before(async () => {
    server = await Server.start();
    browser = await openBrowser();
    plans = await addPlans(server);
});
after(async () => {
    await browser.close();
    await server.remove();
});
afterEach(async () => page?.done());

const open = async (hash, options) => { page = await openPage(browser, server, hash, options); };
const button = (name, inside = page) => inside.getByRole('button', { name, exact: true });
const card = (name) => page.getByRole('region', { name });

async function failed(name, error) {
    await server.enqueue('charge', { queue: 'money', name, max_retries: 0 });
    await server.worker('w-money', { queues: ['money'] });
    const [held] = await server.claim('w-money');
    await server.report('w-money', [held, 'fail', { error }]);
    return held;
}

test('the home page alone tells what runs, what failed and why, and what comes next', async () => {
    await failed('charge order 7', 'card declined');
    await server.enqueue('movie', { queue: 'now', name: 'cut the movie' });
    await server.worker('w-now', { queues: ['now'] });
    const [held] = await server.claim('w-now');
    await server.report('w-now', [held, 'progress', { progress: 40, state: 'Cutting' }]);
    await open('#/');
    const runs = card('Running now').locator('li', { hasText: 'cut the movie' });
    await until(async () => await runs.getByRole('progressbar').getAttribute('aria-valuenow') === '40', '40 %');
    await card('Latest failures').locator('li', { hasText: 'charge order 7' }).getByText('card declined').waitFor();
    await card('Coming up').getByRole('link', { name: 'backup:store' }).waitFor();
    await server.report('w-now', [held, 'complete', {}]);
    await runs.waitFor({ state: 'detached' });
    await failed('charge order 8', 'no such account');
    await card('Latest failures').getByText('no such account').waitFor();
    await card('Latest failures').getByRole('link', { name: 'charge order 8' }).click();
    await page.getByRole('heading', { name: 'charge order 8' }).waitFor();
    await page.getByText('became a dead letter').waitFor();
});

test('a task that waits says why, and what can be done is done from there', async () => {
    const waits = await server.enqueue('lonely', { queue: 'lonely' });
    await server.post('/v1/queues/lonely:pause');
    await open(`#/tasks/${waits.id}`);
    const why = card('Why is it not running?');
    await why.getByText('Its queue lonely has been paused').waitFor();
    await why.getByText('no worker can run it').waitFor();
    await button('Resume the queue lonely').click();
    await why.getByText('No live worker serves the queue lonely').waitFor();
    await why.getByText('--queues lonely').waitFor();
    const other = await server.enqueue('after', { queue: 'lonely', depends_on: [waits.id] });
    await page.evaluate((id) => { location.hash = `#/tasks/${id}`; }, other.id);
    await why.getByText('It is waiting for another task').waitFor();
    await why.getByRole('link', { name: waits.id }).waitFor();
    await why.getByText('in the end: No live worker serves the queue lonely').waitFor();
    await page.getByLabel('Language').selectOption('fr');
    await card('Pourquoi ne s’exécute-t-elle pas ?').getByText('Elle attend une autre tâche').waitFor();
});

test('an alert says in the language of the reader what is wrong', async () => {
    await server.worker('w-broken', { queues: ['broken'] });
    for (let i = 0; i < 21; i++)
        await server.enqueue('broken', { queue: 'broken', max_retries: 0 });
    for (let i = 0; i < 21; i++) {
        const [held] = await server.claim('w-broken');
        await server.report('w-broken', [held, 'fail', { error: 'no' }]);
    }
    await until(async () => (await server.get('/v1/stats')).alerts.some((one) => one.code === 'failure_rate'),
        'an alert');
    await open('#/', { locale: 'fr-FR' });
    const alerts = page.getByRole('list', { name: 'Alertes' });
    await alerts.locator('li', { hasText: 'broken' }).getByText(
        '21 des 21 tâches terminées au cours des 5 dernières minutes ont échoué').waitFor();
});

test('a task that is tried again tells what went wrong, and one whose parent failed tells so', async () => {
    const parent = await server.enqueue('fetch', { queue: 'again', max_retries: 1, retry_delay_ms: 600000 });
    const child = await server.enqueue('use', { queue: 'again', depends_on: [parent.id] });
    await server.worker('w-again', { queues: ['again'] });
    const [held] = await server.claim('w-again');
    await server.report('w-again', [held, 'fail', { error: 'host not found' }]);
    await open(`#/tasks/${parent.id}`);
    await card('Why is it not running?').getByText('retry 1 of 1').waitFor();
    await page.getByRole('note').getByText('host not found').waitFor();
    await server.post(`/v1/tasks/${parent.id}:cancel`);
    await page.evaluate((id) => { location.hash = `#/tasks/${id}`; }, child.id);
    await card('How it ended').getByText('A task it depends on did not end as required').waitFor();
});

test('all tasks are turned round by their making, the rows of a page by any other column', async () => {
    await server.post('/v1/tasks', Array.from({ length: 60 }, (_, at) => ({ type: 'sorted', queue: 'sort',
        name: `row ${String((at * 37) % 60).padStart(2, '0')}` })));
    await open('#/tasks?queue=sort');
    const names = () => page.locator('td.main a').allInnerTexts();
    await until(async () => (await names()).length === 50, 'a page');
    assert.equal((await names())[0], 'row 23');
    await button('Created').click();
    await until(async () => (await names())[0] === 'row 00', 'the oldest first');
    assert.match(page.url(), /order=oldest/);
    await page.getByRole('button', { name: 'Next' }).click();
    await until(async () => (await names()).length === 10, 'the second page');
    assert.equal((await names()).at(-1), 'row 23');
    await button('Task').click();
    await until(async () => (await names()).join() === [...await names()].sort().join(), 'rows by name');
    await button('Task').click();
    await until(async () => (await names()).join() === [...await names()].sort().reverse().join(), 'and back');
    assert.equal(await page.getByRole('columnheader', { name: 'Task' }).getAttribute('aria-sort'), 'descending');
    await button('Created').click();
    await button('Created').click();
    await until(async () => (await names())[0] === 'row 23', 'the newest first again');
});

test('the list tells why tasks failed', async () => {
    await failed('charge order 9', 'the card is stolen');
    await open('#/tasks?queue=money');
    await page.locator('tr', { hasText: 'charge order 9' }).getByText('the card is stolen').waitFor();
});

test('a job is made to depend on another in its form, and a cycle is refused', async () => {
    await open('#/jobs', { allow: [/422/] });
    const own = async (job) => (await server.get(`/v1/jobs/${job.id}/dependencies`)).items;
    await button('Edit: report:daily').click();
    await button('Add a job').click();
    await page.getByLabel('Job', { exact: true }).last().selectOption({ label: 'crm:sync' });
    await page.getByLabel('How').selectOption('trigger');
    await button('Save').click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    const [made] = await own(plans.report);
    assert.deepEqual([made.depends_on_job_id, made.mode, made.dependency_type], [plans.sync.id, 'trigger', 'success']);
    await button('Edit: crm:sync').click();
    await button('Add a job').click();
    await page.getByLabel('Job', { exact: true }).last().selectOption({ label: 'report:daily' });
    await button('Save').click();
    await page.getByText('this would be a cycle').waitFor();
    await button('Remove').click();
    await button('Save').click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    assert.deepEqual(await own(plans.sync), []);
    await button('Edit: report:daily').click();
    await page.getByLabel('Until').selectOption('completion');
    await button('Save').click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    assert.deepEqual((await own(plans.report)).map((one) => [one.dependency_type, one.mode]),
        [['completion', 'trigger']]);
    await button('Edit: report:daily').click();
    await button('Remove').click();
    await button('Save').click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    assert.deepEqual(await own(plans.report), []);
});

test('a job that is edited keeps what it has of its category', async () => {
    const made = await server.post('/v1/jobs', { name: 'inherits', category: 'reports' });
    await open('#/jobs');
    await button('Edit: inherits').click();
    await page.getByLabel('Description').fill('changed');
    await button('Save').click();
    await page.getByText('changed', { exact: true }).waitFor();
    await server.api('PATCH', '/v1/categories/reports', { default_timeout: 77 });
    const job = await server.get(`/v1/jobs/${made.id}`);
    assert.deepEqual([job.description, job.timeout_seconds], ['changed', 77]);
});

test('a pattern is made and changed without JSON, and once is a date', async () => {
    await open('#/schedules?tab=recurring', { allow: [/422/] });
    const config = async (name) => (await server.get(`/v1/recurring/${encodeURIComponent(name)}`)).pattern_config;
    await button('New pattern').click();
    await page.getByRole('textbox', { name: 'Pattern' }).fill('pay day');
    await button('Thu').click();
    await page.locator('.preview strong', { hasText: 'Thursday' }).waitFor();
    await page.getByLabel('Kind').selectOption('monthly');
    await page.getByLabel('On', { exact: true }).selectOption('onWeekday');
    await page.getByLabel('Which').selectOption('-1');
    await page.getByLabel('Weekday').selectOption('friday');
    await page.locator('.preview strong', { hasText: 'last Friday' }).waitFor();
    await page.getByLabel('At', { exact: true }).fill('17:30');
    await button('Save').click();
    await page.getByRole('link', { name: 'pay day' }).waitFor();
    assert.deepEqual(await config('pay day'), { interval: 1, nth: -1, weekday: 'friday', time: '17:30',
        timezone: 'Europe/Berlin' });
    await button('Edit: month end').click();
    assert.equal(await page.getByLabel('Day', { exact: true }).inputValue(), 'last');
    await page.getByLabel('At', { exact: true }).fill('19:00');
    await button('Save').click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    assert.deepEqual(await config('month end'), { interval: 1, day: 'last', time: '19:00',
        timezone: 'Europe/Berlin' });
    await page.getByRole('tab', { name: 'Schedules' }).click();
    await button('New schedule').click();
    await page.getByLabel('Kind').selectOption('once');
    await page.getByLabel('At', { exact: true }).fill('2040-01-02T09:30');
    await page.locator('.preview li').first().waitFor();
    await button('Save').click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    const once = (await server.get('/v1/schedules?schedule_type=once')).items[0];
    assert.equal(once.scheduled_at, '2040-01-02T08:30:00.000000Z');
});

test('workflows are listed, searched, and the tasks around one stand out', async () => {
    const tasks = await addWorkflow(server, 'w-list');
    await open('#/workflows');
    await page.locator('tr', { hasText: 'w-list' }).getByText('Blocked 10 · Pending 2', { exact: false })
        .or(page.locator('tr', { hasText: 'w-list' }).getByText('Blocked 10', { exact: false })).first().waitFor();
    await page.getByRole('link', { name: 'w-list' }).click();
    await until(async () => await page.locator('.node').count() === tasks.length, 'all nodes');
    const clear = () => page.locator('.node:not(.dim)').count();
    await page.getByLabel('Find in the graph').fill('transform');
    await until(async () => await clear() === 6, 'six of that name');
    await page.getByLabel('Find in the graph').fill('');
    await page.getByRole('button', { name: /^Pending/ }).click();
    await until(async () => await clear() === 2, 'the two that are ready');
    await page.getByRole('button', { name: /^Pending/ }).click();
    await page.locator('.node', { hasText: 'extract customers' }).hover();
    await until(async () => await clear() === 8, 'it, three parts, and what comes behind them');
    await page.mouse.move(5, 5);
    await until(async () => await clear() === tasks.length, 'all again');
});

test('older events are read on request', async () => {
    const { id } = await server.enqueue('talker', { queue: 'talk' });
    await server.worker('w-talk', { queues: ['talk'] });
    const [held] = await server.claim('w-talk');
    for (let at = 0; at < 130; at += 10)
        await server.report('w-talk', ...Array.from({ length: 10 }, (_, one) => [held, 'progress',
            { progress: 1, state: `Step ${at + one}` }]));
    await open(`#/tasks/${id}`);
    const events = page.locator('.timeline li');
    await until(async () => await events.count() === 100, 'the newest');
    await button('Older events').click();
    await page.getByText('Step 0', { exact: true }).waitFor();
    assert.ok(await events.count() > 130);
    assert.equal(await button('Older events').count(), 0);
});
