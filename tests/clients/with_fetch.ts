// The scenario of test_clients.py with openapi-fetch and the types that openapi-typescript made.
import assert from 'node:assert/strict';
import createClient from 'openapi-fetch';
import type { components, paths } from './generated/schema';

type Task = components['schemas']['TaskSingle'];

const client = createClient<paths>({ baseUrl: process.env.SERVER! });

async function enqueue(n: number): Promise<Task> {
    const { data, response } = await client.POST('/v1/tasks', {
        body: { type: 'client', queue: 'clients', payload: { n }, priority: 'high', tags: ['fetch'], max_retries: 0 },
    });
    assert.equal(response.status, 201);
    assert(data && !('items' in data) && 'status' in data); // neither of an array nor of a key that is taken
    return data;
}

async function work(worker: string): Promise<void> {
    await client.POST('/v1/workers', { body: { id: worker, queues: ['clients'], pool_size: 1 } });
    const path = { id: worker };
    const claimed = await client.POST('/v1/workers/{id}:claim', { params: { path }, body: { max: 1, wait_ms: 60000 } });
    const task = claimed.data!.tasks[0]!;
    const element = { task_id: task.id, lease_token: task.lease_token };
    const reported = await client.POST('/v1/workers/{id}:report', {
        params: { path },
        body: [{ ...element, op: 'start' }, { ...element, op: 'progress', progress: 50 },
               { ...element, op: 'complete', result: { sum: 42 } }],
    });
    assert.deepEqual(reported.data!.items.map((item) => item.ok), [true, true, true]);
}

async function list(): Promise<string[]> {
    const ids: string[] = [];
    let cursor: string | undefined;
    do {
        const page = await client.GET('/v1/tasks', { params: { query: { queue: 'clients', limit: 2, cursor } } });
        ids.push(...page.data!.items.map((task) => task.id));
        cursor = page.data!.next_cursor ?? undefined;
    } while (cursor);
    return ids;
}

async function main(): Promise<void> {
    const made = [];
    for (let n = 0; n < 5; n++)
        made.push(await enqueue(n));
    await work('fetch-1');
    const ended = await client.GET('/v1/tasks/{id}/wait', { params: { path: { id: made[0]!.id } } });
    assert.equal(ended.data!.status, 'completed');
    assert.deepEqual(ended.data!.result, { sum: 42 });
    assert.deepEqual(await list(), made.map((task) => task.id).reverse());

    const wrong = await client.POST('/v1/tasks', { body: { type: 'client', timeout_ms: 0 } });
    assert.equal(wrong.response.status, 422);
    assert.equal(wrong.error!.error.code, 'invalid');
    assert.equal(wrong.error!.error.field, 'timeout_ms');
    const gone = await client.DELETE('/v1/tasks/{id}', { params: { path: { id: made[0]!.id } } });
    assert.equal(gone.response.status, 204);
}

main().then(() => console.log('done'), (error) => { console.error(error); process.exit(1); });
