// Workers: who is alive, who leads, and what each of them runs now.
import { html } from '../html.js';
import { get, getAll, useLoad } from '../api.js';
import { Ago, Empty, Facts, Loading, Page, Problem } from '../parts/controls.js';
import { Progress, Status } from '../parts/status.js';
import { may } from '../rights.js';
import { link } from '../route.js';
import { number, t, tn } from '../text.js';

const TASKS_SHOWN = 20;

// What they run, in one request: the running tasks; the few that are not among them are named by id.
async function load() {
    const ofStatus = (status) => (may('GET /v1/tasks') ? get(`/v1/tasks?status=${status}&limit=200`) : { items: [] });
    const [workers, running, claimed] = await Promise.all([getAll('/v1/workers'), ofStatus('running'),
        ofStatus('claimed')]);
    const tasks = new Map([...running.items, ...claimed.items].map((task) => [task.id, task]));
    const first = (a, b) => b.is_leader - a.is_leader || b.tasks.length - a.tasks.length
        || (a.id < b.id ? -1 : 1);
    return workers.map((worker) => ({ ...worker, tasks: worker.current_tasks.map((one) => tasks
        .get(one.task_id) ?? { id: one.task_id }) })).sort(first);
}

function Held({ task }) {
    return html`<li><a href=${link('tasks', task.id)}>${task.name ?? task.type ?? task.id}</a>
        ${task.status && html`<${Status} status=${task.status}/><${Progress} value=${task.progress}
            status=${task.status}/>`}</li>`;
}

function Worker({ worker }) {
    const alive = Date.parse(worker.lease_until) > Date.now();
    const held = worker.tasks.length;
    return html`<article class=${`card worker ${alive ? '' : 'gone'}`} aria-label=${worker.id}>
        <header class="card-head"><h2>${worker.hostname || worker.id}</h2>
            ${worker.is_leader && html`<span class="tag good">${t('worker.leader')}</span>`}
            <span class=${`tag ${alive ? 'good' : 'bad'}`}>${t(alive ? 'worker.alive'
        : 'worker.gone')}</span></header>
        <p class="faint"><code>${worker.id}</code></p>
        ${worker.pool_size > 0 && html`<div class="slots"><${Progress} value=${worker.pool_size ? (100 * held) / worker.pool_size : 0}
            label=${t('worker.slots')} status="running"/><span>${t('worker.slotsOf', { n: number(held),
        max: number(worker.pool_size) })}</span></div>`}
        <${Facts} rows=${[[t('nav.queues'), worker.queues.join(', ')],
        [t('worker.types'), worker.pool_size > 0 && (worker.types ? worker.types.join(', ') || '–' : t('worker.anyType'))],
        [t('worker.categories'), worker.categories?.join(', ')],
        [t('worker.unknownCategories'), worker.unknown_categories?.join(', ')],
        [t('worker.heartbeat'), html`<${Ago} time=${worker.last_heartbeat}/>`],
        [t('worker.since'), html`<${Ago} time=${worker.started_at}/>`],
        [t('worker.version'), worker.version]]}/>
        ${held > 0 ? html`<h3>${tn('worker.holds', held)}</h3><ul class="held">${worker.tasks
        .slice(0, TASKS_SHOWN).map((task) => html`<${Held} key=${task.id} task=${task}/>`)}</ul>`
        : html`<p class="faint">${t(worker.pool_size > 0 ? 'worker.idle' : 'worker.noSlots')}</p>`}</article>`;
}

export default function Workers() {
    const workers = useLoad(load, [], 2000);
    return html`<${Page} title=${t('nav.workers')} lead=${t('worker.lead')}>
        <${Problem} error=${workers.error} retry=${workers.reload}/>
        ${!workers.data && !workers.error && html`<${Loading}/>`}
        ${workers.data?.length === 0 && html`<${Empty} title=${t('worker.empty')}
            text=${t('worker.emptyText')} command=${`perdura worker --server ${location.origin} --config perdura.yaml`}/>`}
        <div class="grid workers">${(workers.data ?? []).map((worker) => html`<${Worker} key=${worker.id}
            worker=${worker}/>`)}</div><//>`;
}
