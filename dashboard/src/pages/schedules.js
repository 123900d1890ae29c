// Schedules and recurring patterns: what fires next, a calendar of what will, pause, run now, and forms
// that say in words what was typed.
import { html, useMemo, useState } from '../html.js';
import { attempt, get, getAll, post, remove, useLoad } from '../api.js';
import { Ago, Button, Empty, Loading, Page, Problem, Tabs, TabPanel, When } from '../parts/controls.js';
import { Confirm } from '../parts/dialog.js';
import { Forecast } from '../parts/forecast.js';
import { Form, valuesOf } from '../parts/form.js';
import { flatten, gather, patternFields } from '../parts/pattern.js';
import { Preview, usePreview } from '../parts/preview.js';
import { may } from '../rights.js';
import { link, replaceQuery } from '../route.js';
import { duration, t } from '../text.js';

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const words = (kind, list) => list.map((one) => [one, t(`${kind}.${one}`)]);
const COUNT = 5;

function scheduleFields(jobs, isNew) {
    const kind = (name) => (values) => values.schedule_type === name;
    return [
        ...(isNew ? [{ name: 'job_id', label: t('job.one'), kind: 'select', fallback: jobs[0]?.id,
            options: jobs.map((job) => [job.id, job.name]) }] : []),
        { name: 'schedule_type', label: t('schedule.type'), kind: 'select', fallback: 'cron',
            options: words('scheduleType', ['cron', 'interval', 'once', 'immediate']) },
        { name: 'cron_expression', label: t('schedule.cron'), hint: t('schedule.cronHint'),
            show: kind('cron') },
        { name: 'interval_seconds', label: t('schedule.interval'), kind: 'number', show: kind('interval') },
        { name: 'scheduled_at', label: t('schedule.at'), kind: 'instant', hint: t('schedule.atHint', { zone }),
            show: kind('once') },
        { name: 'timezone', label: t('schedule.zone'), fallback: zone },
        { name: 'misfire', label: t('schedule.misfire'), kind: 'select', fallback: 'fire_once',
            options: words('misfire', ['skip', 'fire_once', 'fire_all']) },
        { name: 'overlap', label: t('schedule.overlap'), kind: 'select', fallback: 'allow',
            options: words('overlap', ['allow', 'skip', 'queue', 'replace']) },
        { name: 'dst', label: t('schedule.dst'), kind: 'select', fallback: 'standard',
            options: words('dstRule', ['standard', 'skip', 'both']) },
    ];
}

// Only what is complete enough to be asked about.
function Live({ path, fields, texts, extra, shape }) {
    let body = null;
    try {
        const given = valuesOf(fields.filter((field) => !['job_id', 'overlap', 'misfire']
            .includes(field.name)), texts);
        const values = shape ? shape(given) : given;
        body = Object.fromEntries(Object.entries({ ...values, ...extra })
            .filter(([, value]) => value !== null));
    } catch {
        // half-typed JSON: wait for the rest
    }
    const ready = body && (body.cron_expression || body.interval_seconds || body.scheduled_at
        || body.schedule_type === 'immediate' || body.pattern_type);
    return html`<${Preview} ...${usePreview(path, ready ? body : null, { zone: texts.timezone || 'UTC',
        byClock: body?.schedule_type !== 'interval' && body?.schedule_type !== 'once' })}/>`;
}

function Words({ base, stamp, fallback }) {
    const told = useLoad(() => get(`${base}/upcoming?count=1`), [base, stamp]);
    return html`${told.data?.explain ?? fallback}`;
}

function expression(schedule) {
    if (schedule.schedule_type === 'cron')
        return schedule.cron_expression;
    if (schedule.schedule_type === 'interval')
        return t('schedule.every', { time: duration(schedule.interval_seconds * 1000) });
    return t(`scheduleType.${schedule.schedule_type}`);
}

function RowActions({ base, kind, thing, title, edit, reload }) {
    const [asking, setAsking] = useState(false);
    const act = (verb) => async () => {
        await attempt(() => post(`${base}:${verb}`), t(`plan.${verb}`, { name: title }));
        await reload();
    };
    const operation = { edit: `PATCH /v1/${kind}/{id}`, remove: `DELETE /v1/${kind}/{id}` };
    const button = (verb, onClick, look = '') => html`<${Button} kind=${`small ${look}`}
        op=${operation[verb] ?? `POST /v1/${kind}/{id}:${verb}`}
        aria-label=${`${t(`action.${verb}`)}: ${title}`} onClick=${onClick}>${t(`action.${verb}`)}<//>`;
    return html`<td class="row-actions">${button('run', act('run'))}
        ${thing.is_active ? button('pause', act('pause')) : button('resume', act('resume'), 'primary')}
        ${button('edit', edit)}${button('remove', () => setAsking(true), 'danger')}
        ${asking && html`<${Confirm} title=${t('confirm.plan')} kind="danger" text=${t('confirm.planText',
        { name: title })} action=${t('action.remove')} onClose=${() => setAsking(false)}
        onConfirm=${async () => {
        await attempt(() => remove(base), t('done.remove', { name: title }));
        reload();
    }}/>`}</td>`;
}

function Table({ items, kind, jobs, edit, reload }) {
    const names = new Map(jobs.map((job) => [job.id, job.name]));
    const schedules = kind === 'schedules';
    return html`<div class="card flush"><div class="table-place"><table class="stack"><thead><tr>
        <th>${t(schedules ? 'job.one' : 'pattern.name')}</th><th>${t('schedule.when')}</th>
        <th>${t('schedule.next')}</th><th>${t('schedule.last')}</th>
        <th><span class="visually-hidden">${t('actions')}</span></th></tr></thead>
        <tbody>${items.map((one) => {
        const base = `/v1/${kind}/${one.id}`;
        const job = names.get(schedules ? one.job_id : one.template_job_id);
        const title = schedules ? job ?? one.id : one.name;
        return html`<tr key=${one.id} class=${one.is_active ? '' : 'off'}><td class="main"><a
            href=${link('tasks', null, schedules ? { schedule_id: one.id }
            : { job_id: one.template_job_id })}>${title}</a>
            ${!one.is_active && html`<span class="tag warn">${t('plan.off')}</span>`}
            ${!schedules && html`<small>${job}</small>`}</td>
            <td class="words"><code>${schedules ? expression(one) : t(`pattern.${one.pattern_type}`)}</code>
            <small><${Words} base=${base} stamp=${one.updated_at} fallback=""/></small>
            ${one.error && html`<p class="bad">${one.error}</p>`}</td>
            <td data-label=${t('schedule.next')}><${When} time=${one.next_fire_at ?? one.next_generation}/></td>
            <td data-label=${t('schedule.last')}><${Ago} time=${one.last_fire_at ?? one.last_generated}/></td>
            <${RowActions} base=${base} kind=${kind} thing=${one} title=${title} edit=${() => edit(one)}
                reload=${reload}/></tr>`;
    })}</tbody></table></div></div>`;
}

function Plans({ kind, jobs, changed }) {
    const list = useLoad(() => getAll(`/v1/${kind}`), [kind], 5000);
    const [form, setForm] = useState(null);
    const schedules = kind === 'schedules';
    const isNew = form === 'new';
    const fields = useMemo(() => (schedules ? scheduleFields(jobs, isNew) : patternFields(jobs)),
        [jobs, kind, isNew]);
    const reload = () => { changed(); return list.reload(); };
    const edited = isNew ? null : form;
    const shape = schedules ? null : (values) => gather(values, edited);
    return html`<div class="actions above"><${Button} op=${`POST /v1/${kind}`} kind="primary" disabled=${jobs.length === 0}
        onClick=${() => setForm('new')}>${t(schedules ? 'schedule.new' : 'pattern.new')}<//>
        ${jobs.length === 0 && may(`POST /v1/${kind}`) && html`<span class="faint">${t('schedule.needsJob')} <a href="#/jobs">${t(
        'nav.jobs')}</a></span>`}</div>
        <${Problem} error=${list.error} retry=${list.reload}/>
        ${!list.data && !list.error && html`<${Loading}/>`}
        ${list.data?.length === 0 && html`<${Empty} title=${t(schedules ? 'schedule.empty'
        : 'pattern.empty')} text=${t('schedule.emptyText')} op=${`POST /v1/${kind}`} command=${schedules
        ? 'perdura schedule create --job JOB --cron "0 9 * * MON-FRI"'
        : 'perdura recurring create NAME --job JOB --pattern weekly --weekdays MON --time 09:00'}/>`}
        ${list.data?.length > 0 && html`<${Table} items=${list.data} kind=${kind} jobs=${jobs}
            edit=${setForm} reload=${reload}/>`}
        ${form && html`<${Form} title=${t(isNew ? (schedules ? 'schedule.new' : 'pattern.new')
        : 'action.edit')} fields=${fields} done=${reload} shape=${shape}
            thing=${edited && !schedules ? flatten(edited) : edited}
            path=${isNew ? `/v1/${kind}` : `/v1/${kind}/${form.id}`} onClose=${() => setForm(null)}
            aside=${(texts) => html`<${Live} texts=${texts} fields=${fields} shape=${shape}
                path=${schedules ? '/v1/schedules:preview' : `/v1/recurring:preview?count=${COUNT}`}
                extra=${schedules ? { count: COUNT } : {}}/>`}/>`}`;
}

export default function Schedules({ query }) {
    const jobs = useLoad(() => getAll('/v1/jobs'), [], 10000);
    const [version, setVersion] = useState(0);
    const tab = query.tab === 'recurring' ? 'recurring' : 'schedules';
    return html`<${Page} title=${t('nav.schedules')} lead=${t('schedule.lead')}>
        <${Problem} error=${jobs.error} retry=${jobs.reload}/>
        <${Forecast} version=${version}/>
        <${Tabs} label=${t('nav.schedules')} current=${tab}
            onChoose=${(next) => replaceQuery({ tab: next })} tabs=${[
    { id: 'schedules', text: t('nav.schedules') }, { id: 'recurring', text: t('pattern.title') }]}/>
        <${TabPanel} id=${tab}>${jobs.data && html`<${Plans} key=${tab} kind=${tab} jobs=${jobs.data}
            changed=${() => setVersion((now) => now + 1)}/>`}<//><//>`;
}
