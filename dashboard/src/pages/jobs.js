// Jobs and their categories: what runs, with which values, when last and when next; forms for both.
import { html, useEffect, useMemo, useState } from '../html.js';
import { attempt, getAll, name, post, remove, useLoad } from '../api.js';
import { Ago, Button, Empty, Loading, Page, Problem, Tabs, TabPanel, When } from '../parts/controls.js';
import { Confirm } from '../parts/dialog.js';
import { Form } from '../parts/form.js';
import { Needs, readNeeds, saveNeeds } from '../parts/needs.js';
import { Status } from '../parts/status.js';
import { may } from '../rights.js';
import { go, link, replaceQuery } from '../route.js';
import { duration, number, t } from '../text.js';

// Where a value comes from that the job does not set itself, as far as its category says.
const OF_CATEGORY = { queue: (category) => category.configuration?.queue ?? 'default',
    priority: (category) => category.default_priority, max_retries: (category) => category.default_max_retries,
    timeout_seconds: (category) => category.default_timeout };
const INHERITED = Object.keys(OF_CATEGORY);
const from = (job, key) => t(`job.from.${job.value_from[key]}`);

// What the job does not set itself is left empty, so that saving does not make it the job's own.
function ownValues(job) {
    return job && { ...job, ...Object.fromEntries(INHERITED.filter((key) => job.value_from?.[key] !== 'job')
        .map((key) => [key, null])) };
}

function jobFields(categories, job) {
    // The server knows what is in force for the job as it is; of another category the form knows its values.
    const isKnown = (texts, key) => job?.value_from && texts.category === job.category
        && job.value_from[key] !== 'job';
    const ofCategory = (texts, key) => {
        const category = categories.find((one) => one.name === texts.category);
        return category ? OF_CATEGORY[key](category) ?? '–' : '–';
    };
    const inherited = (key) => ({
        placeholder: (texts) => (isKnown(texts, key) ? job[key] : ofCategory(texts, key)),
        hint: (texts) => (isKnown(texts, key) ? t('job.inForce', { value: job[key], from: from(job, key) })
            : t('job.inherits', { value: ofCategory(texts, key), category: texts.category })),
    });
    return [
        { name: 'name', label: t('job.name'), required: true, hint: t('job.nameHint') },
        { name: 'description', label: t('job.description') },
        { name: 'category', label: t('category.one'), kind: 'select', fallback: 'general',
            options: categories.map((one) => [one.name, one.name]) },
        { name: 'task_type', label: t('task.type'), hint: t('job.typeHint') },
        { name: 'queue', label: t('queue.one'), ...inherited('queue') },
        { name: 'payload', label: t('task.payload'), kind: 'json', hint: t('form.jsonHint') },
        { name: 'priority', label: t('task.priority'), ...inherited('priority') },
        { name: 'max_retries', label: t('job.retries'), kind: 'number', ...inherited('max_retries') },
        { name: 'timeout_seconds', label: t('job.timeout'), kind: 'number', ...inherited('timeout_seconds') },
        { name: 'max_concurrent', label: t('job.concurrent'), kind: 'number', fallback: 0,
            hint: t('job.concurrentHint') },
        { name: 'is_active', label: t('job.active'), kind: 'check' },
    ];
}

const categoryFields = () => [
    { name: 'name', label: t('category.name'), required: true },
    { name: 'description', label: t('job.description') },
    { name: 'default_priority', label: t('task.priority'), kind: 'select', fallback: 'medium',
        options: ['low', 'medium', 'high', 'critical'].map((one) => [one, t(`priority.${one}`)]) },
    { name: 'default_timeout', label: t('job.timeout'), kind: 'number' },
    { name: 'default_max_retries', label: t('job.retries'), kind: 'number' },
    { name: 'configuration', label: t('category.configuration'), kind: 'json',
        hint: t('category.configurationHint') },
    { name: 'is_active', label: t('job.active'), kind: 'check' },
];

// job: the one that is edited, or null for a new one. What it depends on is read before the form opens.
function JobForm({ job, jobs, categories, onClose, done }) {
    const fields = useMemo(() => jobFields(categories, job), [categories, job]);
    const [before, setBefore] = useState(job ? null : []);
    const [rows, setRows] = useState([]);
    useEffect(() => {
        if (job)
            attempt(() => readNeeds(job)).then((found) => {
                setBefore(found ?? []);
                setRows(found ?? []);
            });
    }, []);
    async function saveExtra(made) {
        try {
            await saveNeeds(made, before, rows);
        } finally { // what was saved of them is known from now on, also after a refusal
            setBefore(await readNeeds(made));
        }
    }
    return before && html`<${Form} title=${t(job ? 'action.edit' : 'job.new')} fields=${fields} thing=${ownValues(job)}
        onClose=${onClose} done=${done} path=${job ? `/v1/jobs/${job.id}` : '/v1/jobs'}
        saveExtra=${saveExtra} extraChanged=${JSON.stringify(rows) !== JSON.stringify(before)} extra=${html`<${Needs} rows=${rows} setRows=${setRows}
            jobs=${jobs.filter((one) => one.id !== job?.id)}/>`}/>`;
}

function Last({ run }) {
    return run ? html`<a href=${link('tasks', run.task_id)}><${Status} status=${run.status}/></a>
        <small><${Ago} time=${run.ended_at}/></small>` : '–';
}

// What its next run gets, and who set it.
function InForce({ job }) {
    if (!job.value_from)
        return null;
    const values = [['max_retries', `${t('job.retries')} ${number(job.max_retries)}`],
        ['timeout_seconds', `${t('task.timeout')} ${duration(job.timeout_ms)}`],
        ['priority', `${t('task.priority')} ${job.priority}`]];
    return html`<small>${[...Map.groupBy(values, ([key]) => from(job, key))].map(([who, list]) => `${list
        .map(([, text]) => text).join(', ')} (${who})`).join(' · ')}</small>`;
}

function JobRow({ job, edit, ask, reload }) {
    const base = `/v1/jobs/${job.id}`;
    async function run() {
        const task = await attempt(() => post(`${base}:run`), t('plan.run', { name: job.name }));
        if (task && may('GET /v1/tasks'))
            go('tasks', task.id);
    }
    const button = (verb, op, onClick, kind = '') => html`<${Button} op=${op} kind=${`small ${kind}`}
        aria-label=${`${t(`action.${verb}`)}: ${job.name}`} onClick=${onClick}>${t(`action.${verb}`)}<//>`;
    return html`<tr class=${job.is_active ? '' : 'off'}><td class="main"><a href=${link('tasks', null,
        { job_id: job.id })}>${job.name}</a>${!job.is_active && html`<span class="tag warn">${t(
        'plan.off')}</span>`}<small>${job.description ?? job.task_type}</small></td>
        <td data-label=${t('category.one')}>${job.category}<${InForce} job=${job}/></td><td class="narrow-hide">${job.queue}</td>
        <td data-label=${t('schedule.last')}><${Last} run=${job.last_execution}/></td><td data-label=${t('schedule.next')}><${When} time=${job.next_execution}/></td>
        <td class="row-actions">${button('run', 'POST /v1/jobs/{id}:run', run, 'primary')}${button('edit',
        'PATCH /v1/jobs/{id}', edit)}${button('remove', 'DELETE /v1/jobs/{id}', () => ask({ title: job.name, confirm: async () => {
            await attempt(() => remove(base), t('done.remove', { name: job.name }));
            reload();
        } }), 'danger')}</td></tr>`;
}

function Jobs({ categories, ask }) {
    const jobs = useLoad(() => getAll('/v1/jobs'), [], 5000);
    const [form, setForm] = useState(null);
    return html`<div class="actions above"><${Button} op="POST /v1/jobs" kind="primary" onClick=${() => setForm('new')}>${t(
        'job.new')}<//></div><${Problem} error=${jobs.error} retry=${jobs.reload}/>
        ${!jobs.data && !jobs.error && html`<${Loading}/>`}
        ${jobs.data?.length === 0 && html`<${Empty} title=${t('job.empty')} text=${t('job.emptyText')}
            op="POST /v1/jobs" command="perdura job create report:daily --category reports"/>`}
        ${jobs.data?.length > 0 && html`<div class="card flush"><div class="table-place"><table class="stack"><thead><tr>
            <th>${t('job.name')}</th><th>${t('category.one')}</th><th class="narrow-hide">${t(
        'queue.one')}</th><th>${t('schedule.last')}</th><th>${t('schedule.next')}</th>
            <th><span class="visually-hidden">${t('actions')}</span></th></tr></thead>
            <tbody>${jobs.data.map((job) => html`<${JobRow} key=${job.id} job=${job} ask=${ask}
                edit=${() => setForm(job)} reload=${jobs.reload}/>`)}</tbody></table></div></div>`}
        ${form && html`<${JobForm} job=${form === 'new' ? null : form} jobs=${jobs.data ?? []}
            categories=${categories} onClose=${() => setForm(null)} done=${jobs.reload}/>`}`;
}

function Categories({ categories, reload, ask }) {
    const [form, setForm] = useState(null);
    const fields = useMemo(categoryFields, []);
    const button = (verb, op, one, onClick, kind = '') => html`<${Button} op=${op} kind=${`small ${kind}`}
        aria-label=${`${t(`action.${verb}`)}: ${one.name}`} onClick=${onClick}>${t(`action.${verb}`)}<//>`;
    return html`<div class="actions above"><${Button} op="POST /v1/categories" kind="primary" onClick=${() => setForm('new')}>${t(
        'category.new')}<//></div><div class="card flush"><div class="table-place"><table class="stack"><thead><tr>
        <th>${t('category.name')}</th><th>${t('task.priority')}</th><th class="n">${t('task.timeout')}</th>
        <th class="n">${t('job.retries')}</th><th><span class="visually-hidden">${t('actions')}</span></th>
        </tr></thead><tbody>${categories.map((one) => html`<tr key=${one.id}
        class=${one.is_active ? '' : 'off'}><td class="main"><strong>${one.name}</strong>
        <small>${one.description}</small></td><td data-label=${t('task.priority')}>${one.default_priority}</td>
        <td class="n" data-label=${t('task.timeout')}>${duration(one.default_timeout === null ? null : one.default_timeout * 1000)}</td>
        <td class="n" data-label=${t('job.retries')}>${number(one.default_max_retries)}</td><td class="row-actions">
        ${button('edit', 'PATCH /v1/categories/{id}', one, () => setForm(one))}${button('remove',
        'DELETE /v1/categories/{id}', one, () => ask({ title: one.name,
        confirm: async () => {
            await attempt(() => remove(`/v1/categories/${name(one.id)}`),
                t('done.remove', { name: one.name }));
            reload();
        } }), 'danger')}</td></tr>`)}</tbody></table></div></div>
        ${form && html`<${Form} title=${t(form === 'new' ? 'category.new' : 'action.edit')}
            fields=${fields} thing=${form === 'new' ? null : form} onClose=${() => setForm(null)}
            done=${reload} path=${form === 'new' ? '/v1/categories' : `/v1/categories/${form.id}`}/>`}`;
}

export default function JobsPage({ query }) {
    const categories = useLoad(() => getAll('/v1/categories'), [], 10000);
    const [asked, setAsked] = useState(null);
    const tab = query.tab === 'categories' ? 'categories' : 'jobs';
    return html`<${Page} title=${t('nav.jobs')} lead=${t('job.lead')}>
        <${Problem} error=${categories.error} retry=${categories.reload}/>
        <${Tabs} label=${t('nav.jobs')} current=${tab} onChoose=${(next) => replaceQuery({ tab: next })}
            tabs=${[{ id: 'jobs', text: t('nav.jobs') }, { id: 'categories', text: t('category.title'),
        count: categories.data?.length }]}/>
        <${TabPanel} id=${tab}>${!categories.data ? html`<${Loading}/>` : tab === 'jobs'
        ? html`<${Jobs} categories=${categories.data} ask=${setAsked}/>`
        : html`<${Categories} categories=${categories.data} reload=${categories.reload}
            ask=${setAsked}/>`}<//>
        ${asked && html`<${Confirm} title=${t('confirm.plan')} kind="danger" action=${t('action.remove')}
            text=${t('confirm.planText', { name: asked.title })} onConfirm=${asked.confirm}
            onClose=${() => setAsked(null)}/>`}<//>`;
}
