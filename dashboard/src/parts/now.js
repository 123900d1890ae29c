// Three short lists for the overview: what runs now, what failed last and why, what fires next. Each is
// asked for again when the counts say that it changed; only what runs is followed by the clock, too.
import { html } from '../html.js';
import { get, query, useLoad } from '../api.js';
import { may } from '../rights.js';
import { link } from '../route.js';
import { duration, t, tn } from '../text.js';
import { Ago, Card, Problem, When } from './controls.js';
import { shownText } from './sealed.js';
import { Progress } from './status.js';

const SHOWN = 5;
const FAILED_READ = 20; // lists come in the order of making: of these the last to end are shown
const DAY_MS = 86400e3;
const FIRES_READ = 200;
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

const named = (task) => html`<a href=${link('tasks', task.id)}>${task.name ?? task.type}</a>`;
const all = (page, values) => html`<a href=${link(page, null, values)}>${t('action.all')}</a>`;

function Short({ id, title, extra, list, empty, children }) {
    return html`<${Card} title=${title} id=${id} extra=${extra}><${Problem} error=${list.error}
        retry=${list.reload}/>${list.data?.length === 0 ? html`<p class="faint">${empty}</p>`
        : list.data && html`<ul class="short">${list.data.map(children)}</ul>`}<//>`;
}

function Running({ counts }) {
    const running = counts.running + counts.claimed;
    const list = useLoad(async () => (running ? (await get(`/v1/tasks?status=running&order=oldest&limit=${
        SHOWN}`)).items : []), [running, counts.completed], running ? 5000 : 0);
    const took = (task) => duration(Math.max(0, Date.now() - Date.parse(task.started_at)));
    const waiting = counts.pending;
    return html`<${Short} id="n1" title=${t('now.running')} list=${list}
        extra=${running > 0 && all('tasks', { status: 'running' })} empty=${html`${t('now.idle')} ${waiting > 0
        && html`<a href=${link('tasks', null, { status: 'pending', order: 'oldest' })}>${tn('now.waiting',
            waiting)}</a>`}`}>${(task) => html`<li key=${task.id}>${named(task)}
            <small>${took(task)}</small><${Progress} value=${task.progress} status="running"/></li>`}<//>`;
}

async function readFailed(counts) {
    const lists = await Promise.all(['failed', 'dead_letter'].filter((status) => counts[status])
        .map((status) => get(`/v1/tasks?status=${status}&limit=${FAILED_READ}`)));
    return lists.flatMap((page) => page.items)
        .sort((a, b) => Date.parse(b.completed_at) - Date.parse(a.completed_at)).slice(0, SHOWN);
}

function Failed({ counts }) {
    const list = useLoad(() => readFailed(counts), [counts.failed, counts.dead_letter]);
    const more = counts.failed ? all('tasks', { status: 'failed' }) : counts.dead_letter
        ? html`<a href="#/recovery?tab=dead">${t('action.all')}</a>` : null;
    return html`<${Short} id="n2" title=${t('now.failed')} list=${list} extra=${more}
        empty=${t('now.noneFailed')}>${(task) => html`<li key=${task.id}>${named(task)}
            <small><${Ago} time=${task.completed_at}/></small>
            <p class="bad cut">${shownText(task.last_error ?? task.error)}</p></li>`}<//>`;
}

// The next instant of each job, and how often it fires within a day.
async function readNext() {
    const { items, cut } = await get(`/v1/forecast${query({ tz: zone, limit: FIRES_READ,
        to: new Date(Date.now() + DAY_MS).toISOString() })}`);
    const jobs = new Map();
    for (const item of items) {
        const one = jobs.get(item.job_id) ?? { ...item, count: 0, cut };
        one.count += item.count ?? 1;
        jobs.set(item.job_id, one);
    }
    return [...jobs.values()].slice(0, SHOWN);
}

function Next() {
    const list = useLoad(readNext, [], 60000);
    return html`<${Short} id="n3" title=${t('now.next')} list=${list}
        extra=${html`<a href="#/schedules">${t('action.all')}</a>`} empty=${html`${t('now.noneNext')} ${may('POST /v1/schedules') && html`<a
        href="#/schedules">${t('schedule.new')}</a>`}`}>${(item) => html`<li key=${item.job_id}><a
        href=${link('tasks', null, { job_id: item.job_id })}>${item.job ?? item.job_id}</a>
        <small><${When} time=${item.at}/></small>${item.count > 1 && html`<p class="faint">${tn('now.times',
    item.count, { more: item.cut ? '+' : '' })}</p>`}</li>`}<//>`;
}

export function Now({ counts }) {
    return html`<div class="grid thirds">${may('GET /v1/tasks') && html`<${Running} counts=${counts}/><${Failed}
        counts=${counts}/>`}${may('GET /v1/forecast') && html`<${Next}/>`}</div>`;
}
