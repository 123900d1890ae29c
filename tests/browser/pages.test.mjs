// Every page in a real browser: what it shows, and that each of its buttons does what it says.
import { after, afterEach, before, test } from 'node:test';
import * as assert from 'node:assert/strict';
import { openBrowser, openPage, Server, until } from './harness.mjs';
import { addPlans, addWorkflow } from './busy.mjs';

let server, browser, page;
before(async () => {
    server = await Server.start();
    browser = await openBrowser();
    await addPlans(server);
});
after(async () => {
    await browser.close();
    await server.remove();
});
afterEach(async () => page?.done());

const open = async (hash, options) => { page = await openPage(browser, server, hash, options); };
const button = (name, inside = page) => inside.getByRole('button', { name, exact: true });
const status = async (id) => (await server.get(`/v1/tasks/${id}`)).status;
const becomes = (id, word) => until(async () => (await status(id)) === word, `${id} ${word}`);

async function deadLetter(type = 'dead', queue = 'dead') {
    const task = await server.enqueue(type, { queue, max_retries: 0 });
    await server.worker('w-dead', { queues: [queue] });
    const [held] = await server.claim('w-dead');
    await server.report('w-dead', [held, 'fail', { error: 'it broke' }]);
    return task.id;
}

test('the overview shows figures, charts, queues, workers and the leader', async () => {
    await server.enqueue('seen', { queue: 'overview' });
    await open('#/');
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.locator('.tile', { hasText: 'Waiting' }).waitFor();
    await page.getByRole('img', { name: 'Throughput' }).waitFor();
    assert.equal(await page.locator('.chart canvas').count(), 4);
    await page.getByRole('link', { name: 'overview', exact: true }).waitFor();
    await page.getByLabel('Queue', { exact: true }).selectOption('overview');
    await page.getByLabel('Period').selectOption('24h');
    await page.waitForResponse((reply) => reply.url().includes('window=24h') && reply.ok());
});

test('tasks are filtered by status, queue, type and words, and the filter is in the address', async () => {
    await server.post('/v1/tasks', [{ type: 'f:one', queue: 'fq', tags: ['red'] },
        { type: 'f:two', queue: 'fq', delay_ms: 3600000 }, { type: 'f:two', queue: 'fq' }]);
    await open('#/tasks?queue=fq');
    await until(async () => await page.locator('tbody tr').count() === 3, '3 rows');
    await page.getByRole('button', { name: /^Delayed/ }).click();
    await until(async () => await page.locator('tbody tr').count() === 1, '1 row');
    assert.match(page.url(), /status=delayed/);
    await button('Clear').click();
    await page.getByLabel('Filter', { exact: true }).fill('tag:red');
    await button('Filter').click();
    await until(async () => await page.locator('tbody tr').count() === 1, '1 row with the tag');
    await page.getByRole('link', { name: 'f:one' }).waitFor();
    await page.getByRole('searchbox', { name: 'Find tasks' }).fill('f:two queue:fq status:pending');
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'f:two' }).waitFor();
    assert.match(page.url(), /q=f%3Atwo/);
});

test('an id in the search box opens that task', async () => {
    const task = await server.enqueue('found', { name: 'found by id' });
    await open('#/');
    await page.getByRole('searchbox', { name: 'Find tasks' }).fill(task.id);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'found by id' }).waitFor();
});

test('selected tasks are cancelled together', async () => {
    const tasks = [await server.enqueue('s', { queue: 'sel' }), await server.enqueue('s', { queue: 'sel' })];
    await open('#/tasks?queue=sel');
    await page.getByLabel('Select this page').check();
    await page.getByRole('button', { name: 'Cancel 2' }).click();
    await becomes(tasks[0].id, 'cancelled');
    await becomes(tasks[1].id, 'cancelled');
});

test('all that fit a filter are cancelled after a preview of how many', async () => {
    await server.post('/v1/tasks', Array.from({ length: 1234 }, () => ({ type: 'b', queue: 'bulk' })));
    await open('#/tasks?queue=bulk&status=pending');
    await button('Cancel all matching …').click();
    await page.getByText('1,234 tasks would be cancelled').waitFor();
    assert.equal((await server.get('/v1/queues/bulk')).counts.pending, 1234);
    await button('Cancel 1,234').click();
    await page.getByText('1,234 tasks were cancelled').waitFor();
    assert.equal((await server.get('/v1/queues/bulk')).counts.cancelled, 1234);
});

test('a task is paused, resumed, given a priority, cancelled, retried and deleted by its buttons', async () => {
    const { id } = await server.enqueue('one', { queue: 'one', name: 'by buttons' });
    await open(`#/tasks/${id}`);
    await button('Pause').click();
    await becomes(id, 'paused');
    await button('Resume').click();
    await becomes(id, 'pending');
    await button('Priority').click();
    await page.getByRole('spinbutton', { name: 'Priority' }).fill('77');
    await button('Save').click();
    await until(async () => (await server.get(`/v1/tasks/${id}`)).priority === 77, 'its priority');
    await button('Cancel').click();
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel', exact: true }).click();
    await becomes(id, 'cancelled');
    await button('Retry').click();
    await becomes(id, 'pending');
    await server.post(`/v1/tasks/${id}:cancel`);
    await button('Delete').click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
    await page.waitForURL(/#\/tasks$/);
});

test('a task shows why it does not run, its attempts, events, checkpoints, log, payload and result', async () => {
    const { id } = await server.enqueue('story', { queue: 'story', payload: { text: 'hello', big: 1 },
        max_retries: 1, retry_delay_ms: 0 });
    await open(`#/tasks/${id}`);
    await page.locator('.why', { hasText: /worker/ }).waitFor();
    await server.worker('w-story', { queues: ['story'] });
    let [held] = await server.claim('w-story');
    await server.report('w-story', [held, 'start'], [held, 'release']);
    await page.locator('.attempt-text', { hasText: 'handed back' }).waitFor();
    [held] = await server.claim('w-story');
    await server.report('w-story', [held, 'fail', { error: 'first try broke' }]);
    [held] = await server.claim('w-story');
    await server.report('w-story', [held, 'start'], [held, 'progress', { progress: 40, state: 'Half way' }],
        [held, 'checkpoint', { name: 'halfway', progress: 50, data: { page: 3 } }],
        [held, 'log', { level: 'WARN', message: 'a line of the log', context: { n: 1 } }]);
    await page.getByText('first try broke').first().waitFor();
    await page.getByText('Attempt 2').waitFor();
    assert.doesNotMatch(await page.locator('main').innerText(), /\blease/i);
    await page.getByRole('tab', { name: /Log/ }).click();
    await page.getByText('a line of the log').waitFor();
    await server.report('w-story', [held, 'log', { level: 'INFO', message: 'and one more' }]);
    await page.getByText('and one more').waitFor();
    await page.getByLabel('Minimum level').selectOption('ERROR');
    await page.getByText('Nothing was logged').waitFor();
    await page.getByRole('tab', { name: /Checkpoints/ }).click();
    await page.getByText('halfway').waitFor();
    await server.report('w-story', [held, 'complete', { result: { bytes: 'AAECAwQFBgcICQoLDA0ODw==' } }]);
    await page.getByRole('tab', { name: /Payload/ }).click();
    await page.locator('.json-key', { hasText: 'text' }).waitFor();
    const result = page.locator('section', { hasText: 'Result' }).last();
    await button('Text', result).click();
    await result.getByText('"bytes": "AAEC', { exact: false }).waitFor();
    await button('Hex', result).click();
    await result.getByText('000000', { exact: false }).waitFor();
});

test('a task in a chain names the task at the root and what holds that one', async () => {
    const root = await server.enqueue('chain', { queue: 'chain' });
    const between = await server.enqueue('chain', { queue: 'chain', depends_on: [root.id] });
    const last = await server.enqueue('chain', { queue: 'chain', depends_on: [between.id] });
    await server.post(`/v1/tasks/${root.id}:pause`);
    await open(`#/tasks/${last.id}`);
    await page.locator('.why p', { hasText: /in the end:.*It has been paused/ }).locator(`a[href$="${root.id}"]`)
        .waitFor();
});

test('numbers too large for a double are shown as they are', async () => {
    const reply = await fetch(`${server.url}/v1/tasks`, { method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: '{"type":"exact","queue":"x","payload":{"n":9223372036854775807,"d":0.1}}' });
    const { id } = JSON.parse(await reply.text());
    await open(`#/tasks/${id}?tab=data`);
    await page.getByText('9223372036854775807').waitFor();
});

test('a task is forked from a checkpoint', async () => {
    const { id } = await server.enqueue('fork', { queue: 'fork' });
    await server.worker('w-fork', { queues: ['fork'] });
    const [held] = await server.claim('w-fork');
    await server.report('w-fork', [held, 'checkpoint', { name: 'here', progress: 30, data: {} }]);
    await open(`#/tasks/${id}`);
    await page.getByRole('tab', { name: /Checkpoints 1/ }).waitFor();
    await button('Fork').click();
    await page.getByLabel('Payload').fill('{"new":true}');
    await page.getByRole('dialog').getByRole('button', { name: 'Fork', exact: true }).click();
    await page.getByText('Forked from').waitFor();
    const forked = page.url().split('/').pop();
    assert.deepEqual((await server.get(`/v1/tasks/${forked}`)).payload, { new: true });
});

test('a task that a dependency cancelled names and links the culprit, and where it began', async () => {
    const { items } = await server.post('/v1/tasks', [{ type: 'g', ref: 'a', name: 'grandparent', max_retries: 0 },
        { type: 'g', ref: 'b', name: 'parent', depends_on: [{ ref: 'a' }] }, { type: 'g', ref: 'c', name: 'bystander',
            delay_ms: 3600000 }, { type: 'g', name: 'child', depends_on: [{ ref: 'b' }, { ref: 'c' }] }]
        .map((task) => ({ ...task, queue: 'family' })));
    await server.worker('w-family', { queues: ['family'] });
    const [held] = await server.claim('w-family');
    await server.report('w-family', [held, 'fail', { error: 'it fell', retryable: false }]);
    await becomes(items[3].id, 'cancelled');
    await open(`#/tasks/${items[3].id}`);
    const why = page.locator('.why');
    await why.getByRole('link', { name: 'parent', exact: true }).waitFor();
    assert.match(await why.innerText(), /parent\s+Cancelled\s+had to complete[^]*started with:\s+grandparent\s+Failed/);
    assert.doesNotMatch(await why.innerText(), /bystander/);
    assert.match(await page.locator('.depends').innerText(), /parent[^]*not met[^]*bystander/);
    await why.getByRole('link', { name: 'grandparent' }).click();
    await page.getByRole('heading', { name: 'grandparent', level: 1 }).waitFor();
});

test('what is looked for in a log is asked for when the typing pauses, not at every key', async () => {
    const { id } = await server.enqueue('noisy', { queue: 'noisy' });
    await server.worker('w-noisy', { queues: ['noisy'] });
    const [held] = await server.claim('w-noisy');
    await server.report('w-noisy', [held, 'start'], [held, 'log', { level: 'INFO', message: 'hay' }],
        [held, 'log', { level: 'INFO', message: 'a needle1, needle2 and needle3' }]);
    await open(`#/tasks/${id}?tab=logs`);
    await page.getByText('hay').waitFor();
    const asked = [];
    page.on('request', (request) => asked.push(new URL(request.url()).searchParams.get('q')));
    for (let turn = 1; ; turn++) { // again when the machine paused between two keys
        const word = `needle${turn % 3 + 1}`;
        const pause = await page.evaluate(async (text) => {
            const input = document.querySelector('.filters input[type=search]');
            let longest = 0;
            for (let at = 1, before = performance.now(); at <= text.length; at++) {
                input.value = text.slice(0, at);
                input.dispatchEvent(new Event('input', { bubbles: true }));
                await new Promise((resolve) => setTimeout(resolve, 10));
                longest = Math.max(longest, performance.now() - before);
                before = performance.now();
            }
            return longest;
        }, word);
        await until(() => asked.includes(word), 'the whole word');
        if (pause < 200) {
            assert.deepEqual(asked.filter((q) => q && !/^needle\d$/.test(q)), []);
            break;
        }
        asked.length = 0;
    }
    await page.getByText('hay', { exact: true }).waitFor({ state: 'detached' });
    await page.getByText('a needle1').waitFor();
});

test('a queue is paused, resumed and limited', async () => {
    await server.enqueue('q', { queue: 'limited' });
    await open('#/queues');
    await button('Pause: limited').click();
    await until(async () => (await server.get('/v1/queues/limited')).paused, 'paused');
    await button('Resume: limited').click();
    await until(async () => !(await server.get('/v1/queues/limited')).paused, 'resumed');
    await button('Limits: limited').click();
    await page.getByLabel('Tasks at once').fill('7');
    await page.getByLabel('Starts').fill('100');
    await button('Save').click();
    await page.getByText('7 at once').waitFor();
    const queue = await server.get('/v1/queues/limited');
    assert.deepEqual([queue.concurrency, queue.rate.count, queue.rate.per_ms], [7, 100, 1000]);
});

test('an empty queue is deleted, one that holds tasks has no button for it', async () => {
    await server.enqueue('q', { queue: 'not-empty' });
    await server.api('PATCH', '/v1/queues/empty-one', { concurrency: 3 });
    await open('#/queues');
    await button('Delete: empty-one').click();
    assert.equal(await button('Delete: not-empty').count(), 0);
    await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByRole('link', { name: 'empty-one' }).waitFor({ state: 'detached' });
    assert.ok(!(await server.get('/v1/queues')).items.some((queue) => queue.name === 'empty-one'));
});

test('workers show what they run now, and which of them leads', async () => {
    await server.enqueue('held', { queue: 'wq', name: 'held right now' });
    await server.worker('w-now', { hostname: 'now.example.org', queues: ['wq'] });
    await server.claim('w-now');
    await open('#/workers');
    const card = page.getByRole('article', { name: 'w-now' });
    await card.getByText('held right now').waitFor();
    await card.getByText('1 of 8').waitFor();
    await page.getByText('leader', { exact: true }).waitFor();
});

test('jobs and categories are made, changed, run and deleted by forms', async () => {
    await open('#/jobs');
    await button('New job').click();
    await page.getByLabel('Job', { exact: true }).fill('made:here');
    await page.getByLabel('Payload').fill('{not json');
    await button('Save').click();
    await page.getByText('This is not JSON').waitFor();
    await page.getByLabel('Payload').fill('{"a":1}');
    await button('Save').click();
    await page.getByRole('link', { name: 'made:here' }).waitFor();
    await button('Edit: made:here').click();
    await page.getByLabel('Description').fill('changed here');
    await button('Save').click();
    await page.getByText('changed here').waitFor();
    await button('Run now: made:here').click();
    await page.waitForURL(/#\/tasks\/.+/);
    await page.goBack();
    await button('Delete: made:here').click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByRole('link', { name: 'made:here' }).waitFor({ state: 'detached' });
    await page.getByRole('tab', { name: /Categories/ }).click();
    await button('New category').click();
    await page.getByLabel('Category', { exact: true }).fill('from-browser');
    await button('Save').click();
    await page.getByText('from-browser').waitFor();
    assert.equal((await server.get('/v1/categories/from-browser')).name, 'from-browser');
});

test('a schedule is explained while it is typed, then saved, paused, run and deleted', async () => {
    await open('#/schedules', { allow: [/422/] }); // what is half typed is refused
    await page.locator('.heats .heat-2').first().waitFor();
    await button('New schedule').click();
    await page.getByLabel('Cron expression').fill('0 0 30 2 *');
    await page.getByText('never fires').waitFor();
    await page.getByLabel('Cron expression').fill('15 10 * * MON');
    await page.getByText('At 10:15').waitFor();
    assert.equal(await page.locator('.preview li').count(), 5);
    await button('Save').click();
    const row = page.locator('tr', { hasText: '15 10 * * MON' });
    await row.waitFor();
    await row.getByRole('button', { name: /^Pause/ }).click();
    await row.getByText('off', { exact: true }).waitFor();
    await row.getByRole('button', { name: /^Resume/ }).click();
    await row.getByRole('button', { name: /^Pause/ }).waitFor();
    const tasks = async () => (await server.get('/v1/tasks?limit=1000&type=report:daily')).items.length
        + (await server.get('/v1/tasks?limit=1000&type=crm:sync')).items.length;
    const count = await tasks();
    await row.getByRole('button', { name: /^Run now/ }).click();
    await until(async () => await tasks() === count + 1, 'one more task');
    await row.getByRole('button', { name: /^Delete/ }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
    await row.waitFor({ state: 'detached' });
});

test('recurring patterns are explained while they are typed, and the calendar tells what fires', async () => {
    await open('#/schedules?tab=recurring');
    await page.getByRole('link', { name: 'month end' }).waitFor();
    await button('New pattern').click();
    await page.getByRole('textbox', { name: 'Pattern' }).fill('weekly here');
    await page.locator('.preview strong').waitFor();
    await button('Save').click();
    await page.getByRole('link', { name: 'weekly here' }).waitFor();
    await page.locator('.heats .heat-2').first().click();
    await page.locator('.fires li').first().waitFor();
});

test('recovery lists what lost its worker, and dead letters are put back one by one and together', async () => {
    const { id } = await server.enqueue('part', { queue: 'part' });
    await server.worker('w-part', { queues: ['part'] });
    const [held] = await server.claim('w-part');
    await server.report('w-part', [held, 'partial', { result: { done: 3 } }]);
    await open('#/recovery');
    const row = page.locator('tr', { hasText: id });
    await row.getByRole('button', { name: 'Check' }).click();
    await page.getByText('part can be recovered').first().waitFor();
    await row.getByRole('button', { name: 'Continue' }).click();
    await becomes(id, 'pending');
    await page.getByRole('tab', { name: 'Recovery queue' }).click();
    await page.getByText('resume_checkpoint').first().waitFor();
    const dead = [await deadLetter(), await deadLetter(), await deadLetter()];
    await page.getByRole('tab', { name: /Dead letters/ }).click();
    await page.locator('tr', { hasText: 'it broke' }).first().getByRole('button', { name: 'Retry' }).click();
    await until(async () => await page.locator('tr', { hasText: 'it broke' }).count() === 2, 'two left');
    await button('Retry all …').click();
    await button('Retry 2').click();
    await page.getByText('2 tasks were retried').waitFor();
    for (const one of dead)
        assert.equal(await status(one), 'pending');
});

test('a workflow is a graph with live statuses that opens its tasks', async () => {
    const tasks = await addWorkflow(server, 'w-graph');
    await open('#/workflows/w-graph');
    await until(async () => await page.locator('.node').count() === tasks.length, 'all nodes');
    assert.ok(await page.locator('.edge').count() > tasks.length);
    await server.post(`/v1/tasks/${tasks[0].id}:pause`);
    await page.locator('.node.paused').waitFor();
    await button('Zoom in').click();
    await button('Fit').click();
    await page.locator('.node', { hasText: 'load warehouse' }).click();
    await page.getByRole('heading', { name: 'load warehouse' }).waitFor();
});

test('no edge of a graph runs behind a task it does not belong to', async () => {
    const chain = Array.from({ length: 5 }, (_, at) => ({ type: 'c', ref: `c${at}`, depends_on: Array.from(
        { length: at }, (_, before) => ({ ref: `c${before}` })) }));
    const fan = Array.from({ length: 60 }, (_, at) => ({ type: 'f', ref: `f${at}`, depends_on: [{ ref: 'c1' }] }));
    const end = { type: 'e', depends_on: ['c0', 'c4', 'f0', 'f30', 'f59'].map((ref) => ({ ref })) };
    const tasks = [...chain, ...fan, end].map((task) => ({ ...task, workflow_id: 'w-edges', queue: 'edges' }));
    await server.post('/v1/tasks', tasks);
    await open('#/workflows/w-edges');
    await until(async () => await page.locator('.node').count() === tasks.length, 'all nodes');
    const behind = await page.evaluate(() => {
        const boxes = [...document.querySelectorAll('.node rect:first-child')].map((rect) => {
            const { x, y, width, height } = rect.getBBox();
            const { e, f } = rect.parentElement.transform.baseVal[0].matrix;
            return { left: x + e + 1, right: x + e + width - 1, top: y + f + 1, bottom: y + f + height - 1 };
        });
        return [...document.querySelectorAll('.edge')].filter((edge) => {
            const length = edge.getTotalLength();
            return Array.from({ length: 200 }, (_, at) => edge.getPointAtLength((length * at) / 199)).some((point) =>
                boxes.some((box) => point.x > box.left && point.x < box.right && point.y > box.top
                    && point.y < box.bottom));
        }).length;
    });
    assert.equal(behind, 0);
});

test('an address that leads nowhere says so, and so does a task that is gone', async () => {
    await open('#/nothing');
    await page.getByRole('heading', { name: 'There is no such page' }).first().waitFor();
    await page.done();
    page = await openPage(browser, server, '#/tasks/01a1de9a-40d4-7a49-8000-00000047a660',
        { allow: [/404/] });
    await page.getByText('There is no such task').waitFor();
});
