// The audit trail: who changed what and when, before and after, and what was refused. Filters live in the
// address; pages by cursor, the newest first.
import { html, useEffect, useRef, useState } from '../html.js';
import { get, query as toQuery, useLoad } from '../api.js';
import { Ago, Button, Empty, Loading, Page, Problem, Select } from '../parts/controls.js';
import { link, replaceQuery } from '../route.js';
import { fullTime, number, t } from '../text.js';

const PAGE_ROWS = 50;
const FILTERS = ['principal', 'action', 'object_kind', 'object_id', 'outcome', 'after', 'before'];
const KINDS = ['task', 'user', 'queue', 'category', 'job', 'schedule', 'recurring', 'dependency', 'token', 'namespace', 'key',
    'route'];
const PLACES = { task: (id) => link('tasks', id), user: (id) => link('tasks', null, { user_id: id }),
    queue: (id) => link('tasks', null, { queue: id }), category: () => link('jobs', null, { tab: 'categories' }),
    job: (id) => link('tasks', null, { job_id: id }), schedule: (id) => link('tasks', null, { schedule_id: id }),
    recurring: () => link('schedules', null, { tab: 'recurring' }), dependency: () => link('jobs'),
    token: () => link('tokens', null, { show: 'all' }), namespace: () => link('namespaces'), key: () => link('keys') };

const words = (value) => (value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value));

// What changed, a line for each field: before and after, or what was made.
function Change({ change }) {
    if (!change)
        return '–';
    const { before, after, ...rest } = change;
    const keys = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
    return html`<dl class="change">${Object.entries(rest).map(([key, value]) => html`<div key=${`.${key}`}><dt>${key}</dt>
        <dd>${words(value)}</dd></div>`)}${keys.map((key) => html`<div key=${key}><dt>${key}</dt><dd>${before
        && html`<del><span class="visually-hidden">${t('audit.was')} </span>${words(before[key] ?? null)}</del> <span aria-hidden="true">→</span> `}${after
        ? html`<ins><span class="visually-hidden">${t('audit.is')} </span>${words(after[key] ?? null)}</ins>` : ''}</dd></div>`)}</dl>`;
}

function Row({ entry, filterBy }) {
    const place = Object.hasOwn(PLACES, entry.object_kind) && entry.object_id ? PLACES[entry.object_kind](entry.object_id) : null;
    return html`<tr><td data-label=${t('audit.at')}><${Ago} time=${entry.at}/><small>${fullTime(entry.at)}</small></td>
        <td class="words" data-label=${t('audit.principal')}><button type="button" class="link" title=${t('audit.only')}
            onClick=${() => filterBy({ principal: entry.principal })}>${entry.principal}</button>
            <small>${[entry.address, entry.token_id].filter(Boolean).join(' · ')}</small></td>
        <td data-label=${t('audit.action')}><code>${entry.action}</code>${entry.outcome === 'refused' && html` <span
            class="tag bad">${t('audit.refused')}</span>`}</td>
        <td class="main">${place ? html`<a href=${place}>${entry.object_kind} ${entry.object_id}</a>`
        : `${entry.object_kind} ${entry.object_id}`}<small>${entry.namespace === 'default' ? '' : entry.namespace}</small></td>
        <td class="words"><${Change} change=${entry.change}/>
        ${entry.request_id && html`<small>${t('audit.request')} ${entry.request_id}</small>`}</td></tr>`;
}

const toLocal = (time) => {
    const date = new Date(time);
    return Number.isNaN(date.getTime()) ? '' : new Date(date - date.getTimezoneOffset() * 60e3).toISOString().slice(0, 19);
};

function FilterBar({ filters, onChange }) {
    const form = useRef(null);
    const key = JSON.stringify(filters);
    useEffect(() => form.current.reset(), [key]);
    function submit(event) {
        event.preventDefault();
        const { elements } = event.target;
        const values = Object.fromEntries(FILTERS.map((name) => [name, elements[name].value.trim()]));
        for (const name of ['after', 'before'])
            values[name] &&= new Date(values[name]).toISOString();
        onChange(values);
    }
    const input = (name, kind = 'search', value = filters[name] ?? '') => html`<label class=${kind === 'search' ? 'grow short-grow' : ''}><span>${t(
        `audit.${name}`)}</span><input name=${name} type=${kind} defaultValue=${value} step=${kind === 'search' ? null : 1}
        autocomplete="off" spellcheck=${false}/></label>`;
    const select = (name, options) => html`<label><span>${t(`audit.${name}`)}</span><select name=${name}
        onChange=${(event) => event.target.form.requestSubmit()}><option value="" selected=${!filters[name]}>${t('audit.any')}</option>
        ${options.map(([id, text]) => html`<option key=${id} value=${id} selected=${filters[name] === id}>${text}</option>`)}</select></label>`;
    return html`<form class="filters pairs" key=${key} ref=${form} onSubmit=${submit}>${input('principal')}${input('action')}
        ${select('object_kind', [...new Set([...KINDS, filters.object_kind].filter(Boolean))].map((one) => [one, one]))}
        ${input('object_id')}${select('outcome', [['done', t('audit.done')], ['refused', t('audit.refused')]])}
        ${input('after', 'datetime-local', toLocal(filters.after))}${input('before', 'datetime-local', toLocal(filters.before))}
        <button type="submit" class="button">${t('action.filter')}</button>
        ${Object.keys(filters).length > 0 && html`<${Button} onClick=${() => onChange({})}>${t('action.clear')}<//>`}</form>`;
}

export default function Audit({ query }) {
    const filters = Object.fromEntries(Object.entries(query).filter(([key, value]) => FILTERS.includes(key) && value));
    const key = JSON.stringify(filters);
    const [cursors, setCursors] = useState([null]);
    const before = useRef(key);
    const cursor = before.current === key ? cursors.at(-1) : null;
    useEffect(() => {
        before.current = key;
        setCursors([null]);
    }, [key]);
    const at = cursors.length;
    const page = useLoad((signal) => get(`/v1/audit${toQuery({ ...filters, limit: PAGE_ROWS, cursor })}`, { signal }),
        [filters, cursor], at === 1 ? 5000 : 0);
    const items = page.data?.items ?? [];
    return html`<${Page} title=${t('nav.audit')} lead=${t('audit.lead')}>
        <${FilterBar} filters=${filters} onChange=${replaceQuery}/>
        <${Problem} error=${page.error} retry=${page.reload}/>${!page.data && !page.error && html`<${Loading}/>`}
        ${page.data && items.length === 0 && html`<${Empty} title=${t('audit.empty')} text=${t(Object.keys(filters).length
        ? 'tasks.emptyFilter' : 'audit.emptyText')}/>`}
        ${items.length > 0 && html`<div class=${`card flush ${page.fresh ? '' : 'stale'}`}><div class="table-place"><table
            class="stack"><thead><tr><th>${t('audit.at')}</th><th>${t('audit.principal')}</th><th>${t('audit.action')}</th>
            <th>${t('audit.object')}</th><th>${t('audit.change')}</th></tr></thead><tbody>${items.map((entry) => html`<${Row}
            key=${entry.id} entry=${entry} filterBy=${(more) => replaceQuery({ ...filters, ...more })}/>`)}</tbody></table></div></div>`}
        ${(at > 1 || page.data?.next_cursor) && html`<nav class="pager" aria-label=${t('pager.label')}>
            <${Button} disabled=${at === 1} onClick=${() => setCursors(cursors.slice(0, -1))}>${t('pager.back')}<//>
            <span>${t('pager.page', { n: number(at) })}</span><${Button} disabled=${!page.data?.next_cursor || !page.fresh}
            onClick=${() => setCursors([...cursors, page.data.next_cursor])}>${t('pager.next')}<//></nav>`}<//>`;
}
