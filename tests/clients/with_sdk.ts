// The same with the client that @hey-api/openapi-ts made.
import assert from 'node:assert/strict';
import { client } from './generated/sdk/client.gen';
import { claim, enqueueTasks, getTask, listTasks, patchQueue, registerWorker, report, waitTask } from './generated/sdk';
import type { TaskSingle } from './generated/sdk';

client.setConfig({ baseUrl: process.env.SERVER! });

async function enqueue(n: number): Promise<TaskSingle> {
    const { data } = await enqueueTasks({ body: { type: 'client', queue: 'clients', payload: n }, throwOnError: true });
    assert(!('items' in data));
    return data as TaskSingle;
}

async function work(id: string): Promise<void> {
    await registerWorker({ body: { id, queues: ['clients'] }, throwOnError: true });
    const claimed = await claim({ path: { id }, body: { max: 1, wait_ms: 60000 }, throwOnError: true });
    const task = claimed.data.tasks[0]!;
    const element = { task_id: task.id, lease_token: task.lease_token };
    const { data } = await report({
        path: { id }, throwOnError: true,
        body: [{ ...element, op: 'start' }, { ...element, op: 'complete', result: 'well' }],
    });
    assert.deepEqual(data.items.map((item) => item.ok), [true, true]);
}

async function list(): Promise<string[]> {
    const ids: string[] = [];
    let cursor: string | undefined;
    do {
        const { data } = await listTasks({ query: { queue: 'clients', limit: 2, cursor }, throwOnError: true });
        ids.push(...data.items.map((task) => task.id));
        cursor = data.next_cursor ?? undefined;
    } while (cursor);
    return ids;
}

async function main(): Promise<void> {
    const made = [];
    for (let n = 0; n < 5; n++)
        made.push(await enqueue(n));
    await work('sdk-1');
    const ended = await waitTask({ path: { id: made[0]!.id }, throwOnError: true });
    assert.equal(ended.data.status, 'completed');
    assert.equal(ended.data.result, 'well');
    assert.deepEqual(await list(), made.map((task) => task.id).reverse());
    const queue = await patchQueue({ path: { name: 'clients' }, body: { concurrency: 3 }, throwOnError: true });
    assert.equal(queue.data.concurrency, 3);

    const { error, response } = await getTask({ path: { id: '01890000-0000-7000-8000-000000000001' } });
    assert.equal(response!.status, 404);
    assert.equal(error!.error.code, 'not_found');
}

main().then(() => console.log('done'), (error) => { console.error(error); process.exit(1); });
