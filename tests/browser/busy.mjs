// Makes a server look like a Tuesday: queues with work, workers that do it, a workflow, jobs with
// schedules, a few failures. For the pictures and for tests that need something of everything.
const TYPES = ['email:send', 'image:resize', 'invoice:pdf', 'search:index', 'webhook:deliver'];
const QUEUES = ['default', 'mail', 'media'];
const pick = (list, at) => list[at % list.length];

export async function addPlans(server) {
    const job = (name, category, description) => server.post('/v1/jobs',
        { name, category, description, payload: { days: 1 } });
    const report = await job('report:daily', 'reports', 'The figures of yesterday');
    const backup = await job('backup:store', 'maintenance', 'A copy of the database');
    const sync = await job('crm:sync', 'general', 'Customers from the CRM');
    const schedule = (made, fields) => server.post(`/v1/jobs/${made.id}/schedules`, fields);
    await schedule(report, { cron_expression: '30 6 * * MON-FRI', timezone: 'Europe/Berlin' });
    await schedule(backup, { cron_expression: '0 2 * * *', timezone: 'UTC' });
    await schedule(sync, { cron_expression: '*/10 8-18 * * *', timezone: 'Europe/Paris' });
    const off = await schedule(sync, { interval_seconds: 43200 });
    await server.post(`/v1/schedules/${off.id}:pause`);
    await server.post('/v1/recurring', { name: 'month end', pattern_type: 'monthly',
        template_job_id: report.id, pattern_config: { day: 'last', time: '18:00',
            timezone: 'Europe/Berlin' } });
    return { report, backup, sync };
}

export async function addWorkflow(server, id, width = 6) {
    const tasks = [{ type: 'etl:extract', name: 'extract orders', ref: 'extract' },
        { type: 'etl:extract', name: 'extract customers', ref: 'customers' }];
    for (let at = 0; at < width; at++)
        tasks.push({ type: 'etl:transform', name: `transform part ${at + 1}`, ref: `t${at}`,
            depends_on: [{ ref: 'extract' }, ...(at % 2 ? [{ ref: 'customers' }] : [])] });
    tasks.push({ type: 'etl:join', name: 'join', ref: 'join',
        depends_on: Array.from({ length: width }, (_, at) => ({ ref: `t${at}` })) });
    tasks.push({ type: 'etl:load', name: 'load warehouse', ref: 'load', depends_on: [{ ref: 'join' }] });
    tasks.push({ type: 'report:mail', name: 'tell the team', depends_on: [{ ref: 'load' }] });
    tasks.push({ type: 'alert:page', name: 'page on-call', depends_on: [{ ref: 'load', type: 'failure' }] });
    const { items } = await server.post('/v1/tasks', tasks.map((task) => ({ ...task, workflow_id: id,
        queue: 'etl' })));
    return items;
}

export async function addBacklog(server, count) {
    await server.post('/v1/tasks', Array.from({ length: count }, (_, at) => ({ type: pick(TYPES, at),
        queue: pick(QUEUES, at * 7 + at % 3), priority: at % 5, payload: { number: at, to: 'ada@example.org' },
        max_retries: 1, retry_delay_ms: 60000 })));
}

// Workers that do so many tasks a second until stop() is called.
export async function work(server, { rate = 20, failing = 0.04 } = {}) {
    const workers = [];
    for (const [at, name] of ['ada', 'grace', 'linus'].entries())
        workers.push(await server.worker(`worker-${name}`, { hostname: `${name}.example.org`, pool_size: 8,
            queues: QUEUES, types: at === 2 ? ['image:*', 'email:*'] : undefined }));
    let stopped = false;
    let turn = 0;
    const held = new Map(workers.map((id) => [id, []]));
    const loop = (async () => {
        while (!stopped) {
            const begin = Date.now();
            const worker = pick(workers, turn);
            const done = held.get(worker); // what it took three turns ago
            if (done.length)
                await server.report(worker, ...done.map((task, at) => ((turn * 7 + at * 3) % 100
                    < failing * 100 ? [task, 'fail', { error: 'connection refused', retryable: turn % 2 === 0 }]
                    : [task, 'complete', { result: { ok: true } }])));
            held.set(worker, await server.claim(worker, Math.ceil(rate / 10)));
            if (held.get(worker).length)
                await server.report(worker, ...held.get(worker).map((task) => [task, 'start', {}]));
            if (turn % 2 === 0)
                await addBacklog(server, Math.ceil(rate / 5) - (turn % 3));
            turn++;
            await new Promise((resolve) => setTimeout(resolve, Math.max(0, 100 - (Date.now() - begin))));
        }
    })();
    return { workers, stop: async () => { stopped = true; await loop; } };
}

// Tasks that failed as often as they may.
export async function addDeadLetters(server) {
    const errors = [['send the invoice of order 4711', 'invoice:mail', '550 no such mailbox'],
        ['charge order 4698', 'card:charge', 'card expired'], ['index page 90', 'search:index', 'time-out after 30 s']];
    await server.worker('worker-office', { hostname: 'office-1.example.org', pool_size: 2, queues: ['office'] });
    for (const [name, type, error] of errors) {
        await server.enqueue(type, { name, queue: 'office', max_retries: 1, retry_delay_ms: 0 });
        for (let failures = 0; failures < 2; failures++) {
            const [held] = await server.claim('worker-office');
            await server.report('worker-office', [held, 'start'], [held, 'fail', { error }]);
        }
    }
}

// A task in the middle of its work, after a failure.
export async function addStory(server) {
    const task = await server.enqueue('video:encode', { name: 'encode keynote.mov', queue: 'story', priority: 5,
        payload: { file: 'keynote.mov', size: 1287345231, presets: ['1080p', '720p'], owner: { id: 7,
            mail: 'grace@example.org' } }, tags: ['video', 'customer-7'], max_retries: 5, retry_delay_ms: 0,
        user_id: 'grace', correlation_id: 'upload-5521', timeout_ms: 7200000 });
    await server.worker('worker-gpu', { hostname: 'gpu-1.example.org', pool_size: 2, queues: ['story'] });
    let [held] = await server.claim('worker-gpu');
    await server.report('worker-gpu', [held, 'start'], [held, 'log', { level: 'INFO', message: 'probing keynote.mov' }],
        [held, 'checkpoint', { name: 'probed', progress: 10, data: { frames: 215940, fps: 29.97 } }],
        [held, 'log', { level: 'WARN', message: 'GPU 0 is busy, waiting', context: { gpu: 0 } }]);
    await server.report('worker-gpu', [held, 'fail', { error: 'out of GPU memory', details: { gpu: 0 } }]);
    [held] = await server.claim('worker-gpu');
    await server.report('worker-gpu', [held, 'start'],
        [held, 'log', { level: 'INFO', message: 'continuing from checkpoint "probed"' }],
        [held, 'checkpoint', { name: '1080p', progress: 55, data: { frame: 118700, preset: '1080p' } }],
        [held, 'progress', { progress: 62, state: 'Encoding 720p' }],
        [held, 'log', { level: 'INFO', message: 'frame 133882 of 215940', context: { preset: '720p', fps: 91.2 } }]);
    return { task, held };
}
