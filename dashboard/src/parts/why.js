// Why a task does not run, in the reader's words and times: made from the reason and its details; a
// reason that is not known here is shown in the server's words. With what can be done about it,
// where it can be done from here.
import { html } from '../html.js';
import { attempt, get, name, post, useLoad } from '../api.js';
import { link } from '../route.js';
import { dayAndTime, duration, has, number, relative, statusText, t, tn } from '../text.js';
import { Button, Command } from './controls.js';
import { Culprits } from './depends.js';
import { ENDED, Status } from './status.js';

const QUIET = new Set(['completed', 'running']);
const at = (time) => (time ? `${dayAndTime(time)} (${relative(time)})` : '–');

function variant(reason, detail) {
    if (reason === 'no_worker')
        return detail.workers === 0 ? 'why.no_worker' : detail.workers_of_queue === 0
            ? 'why.no_worker_queue' : 'why.no_worker_type';
    if (reason === 'job_slot' && !detail.max_concurrent)
        return 'why.job_before';
    if (reason === 'orphaned' && detail.recovery_refused)
        return 'why.orphaned_refused';
    if (reason === 'orphaned' && detail.recovery_error)
        return 'why.orphaned_again';
    if (reason === 'orphaned' && !detail.auto_recovery)
        return 'why.orphaned_stays';
    return `why.${reason}`;
}

function sentence({ reason, text, detail }) {
    const key = variant(reason, detail);
    const values = { queue: detail.queue, type: detail.type, key: detail.key, worker: detail.worker_id,
        job: detail.job, service: detail.service, until: at(detail.until), since: at(detail.since ?? detail.completed_at),
        running: number(detail.running), most: number(detail.concurrency ?? detail.max_concurrent),
        count: number(detail.count), per: duration(detail.per_ms), slots: number(detail.slots),
        retry: number(detail.retry), retries: number(detail.max_retries), attempts: number(detail.attempts),
        status: statusText(detail.status), line: number(detail.line), error: detail.recovery_error ?? '' };
    if (has(`${key}.one`))
        return tn(key, detail.count ?? detail.workers ?? detail.attempts ?? 1, values);
    return has(key) ? t(key, values) : text;
}

const shortly = (reason) => (has(`also.${reason}`) ? t(`also.${reason}`) : reason);

function Help({ why, reload }) {
    const { reason, detail } = why;
    async function resume() {
        await attempt(() => post(`/v1/queues/${name(detail.queue)}:resume`),
            t('queue.done.resume', { name: detail.queue }));
        await reload();
    }
    if (reason === 'queue_paused')
        return html`<p><${Button} op="POST /v1/queues/{name}:resume" kind="small" onClick=${resume}>${t('why.resumeQueue',
            { queue: detail.queue })}<//></p>`;
    if (reason === 'no_worker')
        return html`<div><${Command} text=${`perdura worker --server ${location.origin} --queues ${
            detail.queue} --config perdura.yaml`}/></div>`;
    if (/_(concurrency|rate)$/.test(reason))
        return html`<p><a href="#/queues">${t('why.seeLimits')}</a></p>`;
    if (reason === 'workers_busy')
        return html`<p><a href="#/workers">${t('why.seeWorkers')}</a></p>`;
    return null;
}

export function Why({ task, found }) {
    const why = useLoad(() => get(`/v1/tasks/${task.id}/why`), [task.id, task.version, task.status],
        ENDED.has(task.status) ? 0 : 3000);
    if (!why.data || QUIET.has(task.status))
        return null;
    const detail = why.data.detail ?? {};
    const code = /^\w*/.exec(detail.error ?? '')[0]; // what comes behind it names whom
    const isNamed = detail.tasks?.length === 1 && detail.tasks[0].id === detail.root?.id; // a line above
    const unsatisfied = ENDED.has(task.status) && /^dependency_unsatisfied/.test(detail.error ?? '');
    return html`<section class=${`why ${task.status}`} aria-labelledby="why"><h2 id="why">${t(
        ENDED.has(task.status) ? 'task.howEnded' : 'task.why')}</h2>
        <p>${sentence({ ...why.data, detail })} ${ENDED.has(task.status) && has(`ends.${code}`)
        && !(unsatisfied && found?.culprits.length) && t(`ends.${code}`)}</p>
        ${unsatisfied && html`<${Culprits} found=${found}/>`}
        ${!(unsatisfied && found?.culprits.length) && detail.tasks?.length > 0 && html`<ul>${detail.tasks.map((one) => html`<li key=${one.id}><a
            href=${link('tasks', one.id)}>${one.ref ?? one.id}</a> <${Status}
            status=${one.status}/></li>`)}</ul>`}
        ${detail.root && !unsatisfied && html`<p>${t('why.root')} ${isNamed || html`<a
            href=${link('tasks', detail.root.id)}>${detail.root.id}</a>`} ${sentence(detail.root)}</p>`}
        ${detail.jobs?.length > 0 && html`<ul>${detail.jobs.map((one) => html`<li key=${one.id}><a
            href=${link('tasks', null, { job_id: one.id })}>${one.name ?? one.id}</a> ${t(`waitsFor.${
        one.dependency_type}`)}</li>`)}</ul>`}
        ${detail.also?.length > 0 && html`<p class="faint">${t('task.also')} ${detail.also.map(shortly)
        .join('; ')}</p>`}<${Help} why=${{ ...why.data, detail }} reload=${why.reload}/></section>`;
}
