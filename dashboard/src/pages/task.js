// One task: what it is, why it does not run, what happened to it, what it said, what it was given and
// what came of it; and a button for everything that may be done to it now. Follows the stream.
import { html, useEffect, useState } from '../html.js';
import { attempt, get, getAll, post, remove, useLoad } from '../api.js';
import { Ago, Button, Card, Copy, Empty, Facts, Field, Loading, Page, Problem, Tabs,
    TabPanel } from '../parts/controls.js';
import { Conversation, conversationOf } from '../parts/conversation.js';
import { Confirm, FormDialog } from '../parts/dialog.js';
import { Form } from '../parts/form.js';
import { Depends, useParents } from '../parts/depends.js';
import { Viewer } from '../parts/json.js';
import { NotShown, shownText } from '../parts/sealed.js';
import { Logs } from '../parts/logs.js';
import { allows, ENDED, HELD, Progress, ranMs, Status } from '../parts/status.js';
import { Timeline } from '../parts/timeline.js';
import { Why } from '../parts/why.js';
import { edits, facts } from '../fields.js';
import { go, link, replaceQuery } from '../route.js';
import { notify } from '../store.js';
import { useStream } from '../stream.js';
import { duration, number, t } from '../text.js';

const nameOf = (task) => task.name ?? task.type;

function Fork({ task, checkpoints, onClose }) {
    const first = String(checkpoints[0]?.seq ?? 0);
    const [from, setFrom] = useState(first);
    const [payload, setPayload] = useState('');
    async function fork() {
        const body = { from_checkpoint: Number(from) };
        try {
            if (payload.trim())
                body.payload = JSON.parse(payload);
        } catch {
            throw Object.assign(new Error(t('form.json')), { field: 'payload' });
        }
        const made = await post(`/v1/tasks/${task.id}:fork`, body);
        onClose();
        go('tasks', made.id);
    }
    return html`<${FormDialog} title=${t('fork.title')} onClose=${onClose} onSubmit=${fork} names=${['payload']}
        submit=${t('action.fork')} dirty=${from !== first || payload !== ''}>${(error) => html`
        <p>${t('fork.text')}</p>
        <${Field} label=${t('fork.from')}>${(field) => html`<select ...${field} value=${from}
            onChange=${(event) => setFrom(event.target.value)}>${checkpoints.map((one) => html`<option
            key=${one.seq} value=${one.seq}>${one.seq} · ${one.checkpoint_name} (${one.progress_percent} %)
            </option>`)}<option value="0">${t('fork.start')}</option></select>`}<//>
        <${Field} label=${t('fork.payload')} hint=${t('fork.payloadHint')} error=${error?.field && error.message}>
            ${(field) => html`<textarea ...${field} rows="4" spellcheck=${false} placeholder=${JSON.stringify(
        task.payload)?.slice(0, 200)} value=${payload} onInput=${(event) => setPayload(event.target.value)}>
            </textarea>`}<//>`}<//>`;
}

function Prioritize({ task, onClose, done }) {
    const start = String(task.priority);
    const [value, setValue] = useState(start);
    async function save() {
        await post(`/v1/tasks/${task.id}:prioritize`, { priority: Number(value) });
        notify(t('task.prioritized', { name: nameOf(task) }));
        done();
        onClose();
    }
    return html`<${FormDialog} title=${t('action.prioritize')} onClose=${onClose} onSubmit=${save}
        names=${['priority']} dirty=${value !== start}>${(error) => html`<${Field} label=${t('task.priority')}
        hint=${t('task.priorityHint')} error=${error?.field && error.message}>${(field) => html`<input
        ...${field} type="number" min="-1000" max="1000" value=${value}
        onInput=${(event) => setValue(event.target.value)}/>`}<//>`}<//>`;
}

function Actions({ task, checkpoints, reload }) {
    const [dialog, setDialog] = useState(null);
    const close = () => setDialog(null);
    const act = (verb, body) => async () => {
        await attempt(() => post(`/v1/tasks/${task.id}:${verb}`, body), t(`done.${verb}`, { name: nameOf(task) }));
        await reload();
    };
    const operation = (verb) => (verb === 'remove' ? 'DELETE /v1/tasks/{id}' : `POST /v1/tasks/{id}:${verb}`);
    const button = (verb, onClick, kind = '') => allows(task, verb) && html`<${Button} kind=${kind}
        op=${operation(verb)} onClick=${onClick} data-verb=${verb}>${t(`action.${verb}`)}<//>`;
    return html`${button('retry', act('retry'), ENDED.has(task.status) && task.status !== 'completed'
        ? 'primary' : '')}
        ${button('recover', act('recover', { method: 'resume_checkpoint' }), 'primary')}
        ${button('resume', act('resume'), 'primary')}
        ${button('pause', act('pause'))}
        ${button('prioritize', () => setDialog('prioritize'))}
        ${edits().length > 0 && html`<${Button} op="PATCH /v1/tasks/{id}" data-verb="update" onClick=${() => setDialog('update')}>${t(
        'action.edit')}<//>`}
        <${Button} op="POST /v1/tasks/{id}:fork" data-verb="fork" onClick=${() => setDialog('fork')}>${t('action.fork')}<//>
        ${button('cancel', () => setDialog('cancel'), 'danger')}
        ${button('remove', () => setDialog('remove'), 'danger')}
        ${dialog === 'cancel' && html`<${Confirm} title=${t('confirm.cancel')} kind="danger"
            text=${t('confirm.cancelText')} action=${t('action.cancel')} onConfirm=${act('cancel')}
            onClose=${close}/>`}
        ${dialog === 'remove' && html`<${Confirm} title=${t('confirm.remove')} kind="danger"
            text=${t('confirm.removeText')} action=${t('action.remove')} onClose=${close}
            onConfirm=${async () => {
        if (await attempt(() => remove(`/v1/tasks/${task.id}`),
            t('done.remove', { name: nameOf(task) }), true))
            go('tasks');
    }}/>`}
        ${dialog === 'update' && html`<${Form} title=${t('action.edit')} fields=${edits()} thing=${task}
            path=${`/v1/tasks/${task.id}`} onClose=${close} done=${reload}/>`}
        ${dialog === 'fork' && html`<${Fork} task=${task} checkpoints=${checkpoints} onClose=${close}/>`}
        ${dialog === 'prioritize' && html`<${Prioritize} task=${task} onClose=${close} done=${reload}/>`}`;
}

function About({ task }) {
    const to = (page, id, text = id) => id && html`<a href=${link(page, id)}>${text}</a>`;
    const filter = (key, value) => value && html`<a href=${link('tasks', null, { [key]: value })}>${value}</a>`;
    const ran = ranMs(task);
    return html`<${Facts} rows=${[
        [t('task.type'), filter('type', task.type)], [t('queue.one'), filter('queue', task.queue)],
        [t('task.priority'), number(task.priority)],
        [t('task.attempts'), t('task.attemptsOf', { n: number(task.attempts),
            failures: number(task.retry_count), max: number(task.max_retries + 1) })],
        [t('task.created'), html`<${Ago} time=${task.created_at}/>`],
        [t('task.due'), task.scheduled_at && html`<${Ago} time=${task.scheduled_at}/>`],
        [t('task.started'), task.started_at && html`<${Ago} time=${task.started_at}/>`],
        [t('task.took'), ran === null ? null : duration(ran)],
        [t('task.timeout'), duration(task.timeout_ms)],
        [t('worker.one'), task.worker_id && html`<a href="#/workers">${task.worker_id}</a>`],
        ...facts().map((field) => [field.label, field.filter ? filter(field.name, task[field.name])
            : task[field.name]]),
        [t('job.one'), filter('job_id', task.job_id)],
        [t('task.parent'), to('tasks', task.parent_id)],
        [t('task.forked'), to('tasks', task.metadata?.forked_from)],
        [t('task.tags'), task.tags.length > 0 && task.tags.map((tag) => html`<a class="tag" key=${tag}
            href=${link('tasks', null, { tag })}>${tag}</a> `)],
        [t('workflow.one'), html`<a href=${link('workflows', task.workflow_id ?? task.id)}>${
            task.workflow_id ?? t('workflow.show')}</a>`],
    ]}/>`;
}

// What people say about it, in full: a remark is there to be read.
function Remarks({ task }) {
    return edits().filter((field) => task[field.name]).map((field) => html`<p class="remark" key=${field.name}>
        <strong>${field.label}</strong> <span>${task[field.name]}</span></p>`);
}

function Checkpoints({ list }) {
    if (list.length === 0)
        return html`<${Empty} title=${t('checkpoints.empty')} text=${t('checkpoints.emptyText')}
            command=${'echo \'{"checkpoint":{"name":"one","progress":30,"data":{}}}\' >&3'}/>`;
    return html`<ol class="checkpoints">${list.map((one) => html`<li key=${one.seq}><header>
        <strong>${one.checkpoint_name}</strong><span>${one.progress_percent} %</span>
        ${!one.is_valid && html`<span class="tag bad">${t('checkpoints.damaged')}</span>`}
        <${Ago} time=${one.created_at}/></header>${one.step_description
        && html`<p>${shownText(one.step_description)}</p>`}${one.redacted ? html`<${NotShown}/>`
        : html`<${Viewer} label=${one.checkpoint_name} value=${one.recoverable_data}/>`}</li>`)}</ol>`;
}

function Data({ task }) {
    const parts = [['payload', task.payload], ['result', task.result], ['data', task.data],
        ['error_details', task.error_details],
        ['metadata', Object.keys(task.metadata ?? {}).length ? task.metadata : null]];
    const missing = (key) => task.redacted && (key === 'payload' || key === 'result');
    return html`<div class="grid">${parts.filter(([key, value]) => (value !== null && value !== undefined) || key === 'payload'
        || (key === 'result' && ENDED.has(task.status))).map(([key, value]) => html`<${Card} key=${key}
        title=${t(`task.${key}`)} id=${`data-${key}`}>${missing(key) ? html`<${NotShown}/>` : html`<${Viewer}
        label=${t(`task.${key}`)} value=${value}/>`}<//>`)}</div>`;
}

export default function Task({ id, query }) {
    const base = `/v1/tasks/${encodeURIComponent(id)}`;
    const task = useLoad(() => get(base), [id]);
    const events = useLoad(() => get(`${base}/events?limit=100`), [id, task.data?.version]);
    const executions = useLoad(() => getAll(`${base}/executions`, 100), [id, task.data?.version]);
    const checkpoints = useLoad(() => getAll(`${base}/checkpoints`, 100), [id, task.data?.version]);
    const found = useParents(task.data);
    const [live, setLive] = useState(null);
    const tab = query.tab ?? 'timeline';
    useStream({ task_id: id }, { task: (note) => { setLive(note); task.reload(); }, gap: task.reload });
    useEffect(() => setLive(null), [task.data]);
    if (!task.data)
        return html`<${Page} title=${t('task.one')}>${task.error?.status === 404
            ? html`<${Empty} title=${t('task.gone')} text=${t('task.goneText')}><a class="button"
                href="#/tasks">${t('nav.tasks')}</a><//>`
            : task.error ? html`<${Problem} error=${task.error} retry=${task.reload}/>`
                : html`<${Loading}/>`}<//>`;
    const now = live && live.version > task.data.version
        ? { ...task.data, status: live.status, progress: live.progress } : task.data;
    const error = now.status !== 'completed' && !HELD.has(now.status) && (now.last_error ?? now.error);
    const tabs = [{ id: 'timeline', text: t('task.timeline') }, { id: 'logs', text: t('task.logs') },
        { id: 'data', text: t('task.dataTab') },
        { id: 'checkpoints', text: t('task.checkpoints'), count: checkpoints.data?.length }];
    const talk = conversationOf(checkpoints.data);
    if (talk)
        tabs.unshift({ id: 'conversation', text: t('task.conversation') });
    return html`<${Page} title=${nameOf(now)} actions=${html`<${Actions} task=${now}
        checkpoints=${checkpoints.data ?? []} reload=${task.reload}/>`}>
        <p class="under-title"><${Status} status=${now.status}/> <code>${now.id}</code>
            <${Copy} text=${now.id}/> ${now.pause_requested && html`<span class="tag warn">${t(
        'task.pauseAsked')}</span>`}</p>
        <${Problem} error=${task.error} retry=${task.reload}/>
        <div class="progress-line"><${Progress} value=${now.status === 'completed' ? 100 : now.progress}
            status=${now.status}/><span><span>${number(now.status === 'completed' ? 100
        : now.progress)} %</span><em>${now.state}</em></span></div>
        ${error && html`<div class="problem" role="note"><strong>${t(ENDED.has(now.status) ? 'task.error'
        : 'task.lastError')}</strong> <span>${shownText(error)}</span></div>`}
        ${now.redacted && ['failed', 'dead_letter'].includes(now.status) && html`<div class="problem" role="note"><strong>${t(
        'task.error')}</strong> <${NotShown}/></div>`}
        <${Remarks} task=${now}/>
        <${Why} task=${now} found=${found}/>
        <${Card}><${About} task=${now}/><//>
        <${Depends} found=${found} task=${now}/>
        <${Tabs} tabs=${tabs} current=${tab} label=${t('task.one')}
            onChoose=${(next) => replaceQuery({ tab: next })}/>
        <${TabPanel} id=${tab}>
            ${tab === 'timeline' && html`<${Timeline} base=${base} task=${now} page=${events.data}
                executions=${executions.data ?? []}/>`}
            ${tab === 'logs' && html`<${Logs} base=${base} redacted=${now.redacted} ended=${ENDED.has(now.status)}/>`}
            ${tab === 'data' && html`<${Data} task=${now}/>`}
            ${tab === 'conversation' && talk && html`<${Conversation} task=${now} checkpoint=${talk} reload=${task.reload}/>`}
            ${tab === 'checkpoints' && html`<${Checkpoints} list=${checkpoints.data ?? []}/>`}
        <//><//>`;
}
