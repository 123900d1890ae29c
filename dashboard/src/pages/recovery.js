// What went wrong and can be put right: tasks that lost their worker, the recovery queue, and dead
// letters, which can be put back all at once.
import { html, useState } from '../html.js';
import { attempt, get, post, useLoad } from '../api.js';
import { Ago, Button, Empty, Loading, Page, Problem, Tabs, TabPanel } from '../parts/controls.js';
import { Bulk } from '../parts/bulk.js';
import { shownText } from '../parts/sealed.js';
import { Status } from '../parts/status.js';
import { link, replaceQuery } from '../route.js';
import { has, number, t } from '../text.js';

const nameOf = (task) => task.name ?? task.type ?? task.task_id;

// What lost its worker, each with why it could not be recovered since, where that was tried.
async function loadCandidates() {
    const [list, refused] = await Promise.all([get('/v1/recovery/candidates?auto_recovery=any&limit=200'),
        get('/v1/recovery?status=failed&limit=200')]);
    const newest = new Map([...refused.items].reverse().map((one) => [one.task_id, one]));
    return { ...list, items: list.items.map((task) => {
        const entry = newest.get(task.task_id);
        const ofThisLoss = entry && !(Date.parse(entry.created_at) < Date.parse(task.last_heartbeat));
        return { ...task, refusal: ofThisLoss ? entry.error_message : null };
    }) };
}

function Candidates() {
    const list = useLoad(loadCandidates, [], 3000);
    const recover = (task, method) => async () => {
        await attempt(() => post('/v1/recovery', { task_id: task.task_id, method }),
            t('done.recover', { name: nameOf(task) }));
        await list.reload();
    };
    async function validate(task) {
        await attempt(async () => {
            const answer = await post('/v1/recovery/validate', { task_id: task.task_id });
            if (!answer.valid)
                throw new Error(t('recovery.invalid', { name: nameOf(task), why: answer.reason ?? 'payloads:read' }));
        }, t('recovery.valid', { name: nameOf(task) }));
    }
    if (!list.data)
        return list.error ? html`<${Problem} error=${list.error} retry=${list.reload}/>` : html`<${Loading}/>`;
    if (list.data.items.length === 0)
        return html`<${Empty} title=${t('recovery.none')} text=${t('recovery.noneText')}
            command="perdura recovery candidates"/>`;
    return html`<div class="card flush"><div class="table-place"><table class="stack"><thead><tr>
        <th>${t('task.one')}</th><th>${t('recovery.reason')}</th><th>${t('task.status')}</th>
        <th class="n">${t('recovery.crashes')}</th><th class="n">${t('recovery.lastSign')}</th>
        <th><span class="visually-hidden">${t('actions')}</span></th></tr></thead>
        <tbody>${list.data.items.map((task) => html`<tr key=${task.task_id}><td class="main"><a
            href=${link('tasks', task.task_id)}>${nameOf(task)}</a>
            <small>${task.task_id}</small></td><td class="words" data-label=${t('recovery.reason')}>${
            has(`recovery.reason.${task.reason}`) ? t(`recovery.reason.${task.reason}`) : task.reason}${task.refusal
        && html`<small class="bad">${t('recovery.refused', { why: task.refusal })}</small>`}</td>
            <td>${task.status && html`<${Status} status=${task.status}/>`}</td>
            <td class="n" data-label=${t('recovery.crashes')}>${number(task.crash_count)}</td>
            <td class="n" data-label=${t('recovery.lastSign')}><${Ago} time=${task.last_heartbeat}/></td>
            <td class="row-actions"><${Button} op="POST /v1/recovery/validate" kind="small" onClick=${() => validate(task)}>${t(
        'recovery.validate')}<//><${Button} op="POST /v1/recovery" kind="small" onClick=${recover(task, 'restart_clean')}>${t(
        'recovery.restart')}<//><${Button} op="POST /v1/recovery" kind="small primary"
            onClick=${recover(task, 'resume_checkpoint')}>${t('recovery.resume')}<//></td></tr>`)}</tbody>
        </table></div></div>`;
}

function Entries() {
    const list = useLoad(() => get('/v1/recovery?limit=100'), [], 3000);
    if (!list.data)
        return list.error ? html`<${Problem} error=${list.error} retry=${list.reload}/>` : html`<${Loading}/>`;
    if (list.data.items.length === 0)
        return html`<${Empty} title=${t('recovery.queueEmpty')} text=${t('recovery.queueEmptyText')}
            op="POST /v1/recovery" command="perdura recovery run ID"/>`;
    return html`<div class="card flush"><div class="table-place"><table class="stack"><thead><tr>
        <th>${t('task.one')}</th><th>${t('recovery.method')}</th><th>${t('task.status')}</th>
        <th>${t('recovery.outcome')}</th><th class="n">${t('task.attempts')}</th>
        <th class="n">${t('task.created')}</th></tr></thead><tbody>${list.data.items.map((one) => html`<tr
        key=${one.id}><td><a href=${link('tasks', one.task_id)}><code>${one.task_id}</code></a></td>
        <td data-label=${t('recovery.method')}>${one.recovery_method}</td><td data-label=${t('task.status')}><span class=${`status ${one.status}`}><i></i>${t(
        `recovery.${one.status}`)}</span></td><td class="words" data-label=${t('recovery.outcome')}>${shownText(one.error_message
    ?? one.recovery_result?.reason ?? '–')}</td><td class="n" data-label=${t('task.attempts')}>${
        one.max_attempts ? `${number(one.attempts)}/${number(one.max_attempts)}` : number(one.attempts)}</td>
        <td class="n" data-label=${t('task.created')}><${Ago} time=${one.created_at}/></td></tr>`)}</tbody></table></div></div>`;
}

function DeadLetters() {
    const list = useLoad(() => get('/v1/tasks?status=dead_letter&limit=100'), [], 3000);
    const [bulk, setBulk] = useState(false);
    const redrive = (task) => async () => {
        await attempt(() => post(`/v1/tasks/${task.id}:retry`),
            t('done.retry', { name: nameOf(task) }));
        await list.reload();
    };
    if (!list.data)
        return list.error ? html`<${Problem} error=${list.error} retry=${list.reload}/>` : html`<${Loading}/>`;
    if (list.data.items.length === 0)
        return html`<${Empty} title=${t('dead.none')} text=${t('dead.noneText')}/>`;
    return html`<div class="actions above"><${Button} op="POST /v1/tasks:retry" kind="primary" onClick=${() => setBulk(true)}>${t(
        'dead.redriveAll')}<//><a class="button" href=${link('tasks', null, {
        status: 'dead_letter' })}>${t('dead.filter')}</a></div>
        <div class="card flush"><div class="table-place"><table class="stack"><thead><tr><th>${t('task.one')}</th>
        <th>${t('queue.one')}</th><th>${t('task.error')}</th><th class="n">${t('task.attempts')}</th>
        <th class="n">${t('task.ended')}</th><th><span class="visually-hidden">${t('actions')}</span></th></tr>
        </thead><tbody>${list.data.items.map((task) => html`<tr key=${task.id}><td class="main"><a
        href=${link('tasks', task.id)}>${task.name ?? task.type}</a><small>${task.type}</small></td>
        <td data-label=${t('queue.one')}>${task.queue}</td><td class="words bad">${shownText(task.last_error ?? task.error)}</td>
        <td class="n" data-label=${t('task.attempts')}>${number(task.attempts)}</td><td class="n" data-label=${t('task.ended')}><${Ago} time=${task.completed_at}/></td>
        <td class="row-actions"><${Button} op="POST /v1/tasks/{id}:retry" kind="small" onClick=${redrive(task)}>${t('dead.redrive')}<//>
        </td></tr>`)}</tbody></table></div></div>
        ${bulk && html`<${Bulk} verb="retry" filters=${{ status: 'dead_letter' }} onClose=${() => {
        setBulk(false);
        list.reload();
    }}/>`}`;
}

const tabs = { candidates: Candidates, queue: Entries, dead: DeadLetters };

export default function Recovery({ query }) {
    const stats = useLoad(() => get('/v1/stats'), [], 5000);
    const tab = Object.hasOwn(tabs, query.tab ?? '') ? query.tab : 'candidates';
    const Shown = tabs[tab];
    return html`<${Page} title=${t('nav.recovery')} lead=${t('recovery.lead')}>
        <${Tabs} label=${t('nav.recovery')} current=${tab} onChoose=${(next) => replaceQuery({ tab: next })}
            tabs=${[{ id: 'candidates', text: t('recovery.candidates') },
        { id: 'queue', text: t('recovery.queue') },
        { id: 'dead', text: t('dead.title'), count: stats.data?.counts.dead_letter }]}/>
        <${TabPanel} id=${tab}><${Shown}/><//><//>`;
}
