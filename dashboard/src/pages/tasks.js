// The list of tasks: filters that live in the address, pages by cursor over however many there are,
// rows that change while they are looked at, and the same action for one, some or all of them.
import { html, useEffect, useMemo, useRef, useState } from '../html.js';
import { attempt, get, post, query as toQuery, useLoad } from '../api.js';
import { Ago, Button, Empty, Loading, Page, Problem } from '../parts/controls.js';
import { Bulk } from '../parts/bulk.js';
import { isSealed, shownText } from '../parts/sealed.js';
import { allows, cancellable, Progress, ranMs, retryable, Status, STATUSES } from '../parts/status.js';
import { mayAny } from '../rights.js';
import { go, link, replaceQuery } from '../route.js';
import { FILTERS, parseSearch, writeSearch } from '../search.js';
import { useStream } from '../stream.js';
import { duration, number, shortNumber, statusText, t, tn } from '../text.js';

const PAGE_ROWS = 50;
const FAILED = new Set(['failed', 'dead_letter']);
const took = (task) => ranMs(task) ?? -1;
// What the rows of a page are put in order by; the list itself has the order of making.
const SORTS = { status: (task) => STATUSES.indexOf(task.status), name: (task) => task.name ?? task.type,
    queue: (task) => task.queue, progress: (task) => task.progress, attempts: (task) => task.attempts, took };
const LOOK_MS = 5000; // so long a page looks for words before it shows what it has
const SOON_MS = 200;
const LATER_MS = 1500;

// Words have no index: the server looks for them a while and says where to continue.
async function loadPage(parameters, signal) {
    const end = Date.now() + LOOK_MS;
    const ask = (cursor) => get(`/v1/tasks${toQuery({ ...parameters, cursor })}`, { signal });
    const page = await ask(parameters.cursor);
    while (parameters.q && page.next_cursor && page.items.length < parameters.limit && Date.now() < end) {
        const next = await ask(page.next_cursor);
        page.items.push(...next.items);
        page.next_cursor = next.next_cursor;
    }
    return page;
}

// Whether the server's counts and its stream can be narrowed the same way as the list.
const isCounted = (filters) => !FILTERS.some((key) => filters[key] && !['status', 'queue', 'type'].includes(key));

// sort: the name of a column, with - before it from the largest down; '' is as the server has it.
function sorted(tasks, sort) {
    const value = SORTS[sort.replace('-', '')];
    if (!value)
        return tasks;
    const sign = sort.startsWith('-') ? -1 : 1;
    return [...tasks].sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        return sign * (x < y ? -1 : x > y ? 1 : 0);
    });
}

// The counts of the filters that the server counts anyway: queue and type. Of others none are known,
// nor where the server left some lanes out.
function countsOf(stats, filters) {
    const counts = {};
    if (!isCounted(filters))
        return null;
    if (stats?.cut)
        return filters.queue || filters.type ? null : stats.counts;
    for (const lane of stats?.lanes ?? [])
        if ((!filters.queue || lane.queue === filters.queue)
            && (!filters.type || lane.type === filters.type))
            counts[lane.status] = (counts[lane.status] ?? 0) + lane.tasks;
    return counts;
}

function Chips({ filters, counts, onChoose }) {
    const all = counts && Object.values(counts).reduce((sum, one) => sum + one, 0);
    const chip = (status, text, count) => html`<button type="button" key=${status}
        class=${`chip ${status}`} aria-pressed=${(filters.status ?? '') === status ? 'true' : 'false'}
        onClick=${() => onChoose(status)}>${status && html`<i aria-hidden="true"></i>`}${text}
        ${counts && html`<span class="count">${shortNumber(count ?? 0)}</span>`}</button>`;
    return html`<div class="chips" role="group" aria-label=${t('tasks.byStatus')}>
        ${chip('', t('tasks.any'), all)}
        ${STATUSES.filter((one) => !counts || counts[one] || filters.status === one)
        .map((one) => chip(one, statusText(one), counts?.[one]))}</div>`;
}

function FilterBar({ filters, stats, onChange }) {
    const [text, setText] = useState(writeSearch({ ...filters, status: '' }));
    const written = writeSearch({ ...filters, status: '' });
    useEffect(() => setText(written), [written]);
    const names = (key) => [...new Set((stats?.lanes ?? []).map((lane) => lane[key]))].sort();
    function submit(event) {
        event.preventDefault();
        const found = parseSearch(text);
        if (found.id)
            go('tasks', found.id);
        else
            onChange({ status: filters.status, ...found.filters });
        document.getElementById('content').focus();
    }
    return html`<form class="filters" onSubmit=${submit}><label class="grow"><span>${t('tasks.filter')}
        </span><input type="search" list="types" value=${text} spellcheck=${false} autocomplete="off"
            placeholder=${t('tasks.filterHint')} onInput=${(event) => setText(event.target.value)}/></label>
        <datalist id="types">${names('type').map((one) => html`<option key=${one} value=${`type:${one}`}/>`)}</datalist>
        <label><span>${t('queue.one')}</span><select value=${filters.queue ?? ''}
            onChange=${(event) => onChange({ ...filters, queue: event.target.value })}>
            <option value="">${t('tasks.anyQueue')}</option>${names('queue').map((one) => html`<option
            key=${one} value=${one} selected=${one === filters.queue}>${one}</option>`)}</select></label>
        <button type="submit" class="button">${t('action.filter')}</button>
        ${FILTERS.some((key) => filters[key]) && html`<${Button} onClick=${() => onChange({})}>${t(
        'action.clear')}<//>`}</form>`;
}

// Beneath the name: why it failed, when it is due, or what else identifies it.
function Beneath({ task }) {
    const error = task.last_error ?? task.error;
    if (FAILED.has(task.status) && error)
        return html`<small class="bad cut" title=${isSealed(error) ? null : error}>${shownText(error)}</small>`;
    if (task.status === 'delayed' && task.scheduled_at)
        return html`<small>${t('task.due')} <${Ago} time=${task.scheduled_at}/>${task.last_error
            && html` · <span class="bad">${shownText(task.last_error)}</span>`}</small>`;
    return html`<small>${task.name ? task.type : task.id}</small>`;
}

function Row({ task, selected, onSelect }) {
    const ran = took(task);
    return html`<tr class=${selected ? 'selected' : ''}>${selects() && html`<td class="check"><input type="checkbox"
        checked=${selected} onChange=${onSelect} aria-label=${t('tasks.select', {
    name: task.name ?? task.type })}/></td>`}
        <td class="state"><${Status} status=${task.status}/></td>
        <td class="main"><a href=${link('tasks', task.id)}>${task.name ?? task.type}</a>
            <${Beneath} task=${task}/></td>
        <td class="narrow-hide">${task.queue}</td>
        <td class="progress-cell">${task.progress > 0 || task.status === 'running'
        ? html`<${Progress} value=${task.progress} status=${task.status}/>` : ''}</td>
        <td class="n narrow-hide">${number(task.attempts)}</td>
        <td class="n narrow-hide">${ran >= 0 ? duration(ran) : '–'}</td>
        <td class="n made"><${Ago} time=${task.created_at}/></td></tr>`;
}

// Rows are selected to do something with them.
const selects = () => mayAny('POST /v1/tasks/{id}:cancel', 'POST /v1/tasks/{id}:retry');

// The head of a column that can be sorted by: a button that says so.
function Sortable({ by, text, sort, onSort, kind = '', made = false }) {
    const now = sort === by ? 'ascending' : sort === `-${by}` ? 'descending' : null;
    return html`<th class=${kind} aria-sort=${now}><button type="button" class="sort" onClick=${() => onSort(
        now === 'ascending' ? `-${by}` : by)} title=${made ? null : t('tasks.sortPage')}>${text}<i
        aria-hidden="true">${now === 'ascending' ? '↑' : now === 'descending' ? '↓' : '↕'}</i></button></th>`;
}

function Table({ tasks, selected, setSelected, sort, onSort }) {
    const all = tasks.length > 0 && tasks.every((task) => selected.has(task.id));
    function toggle(ids) {
        const next = new Set(selected);
        const on = !ids.every((id) => next.has(id));
        ids.forEach((id) => (on ? next.add(id) : next.delete(id)));
        setSelected(next);
    }
    const column = (by, text, kind) => html`<${Sortable} by=${by} text=${t(text)} kind=${kind} sort=${sort}
        onSort=${onSort}/>`;
    return html`<div class="table-place"><table class="tasks"><caption
        class="visually-hidden">${t('nav.tasks')}</caption><thead><tr>${selects() && html`<th class="check"><input
        type="checkbox" checked=${all} aria-label=${t('tasks.selectAll')}
        onChange=${() => toggle(tasks.map((task) => task.id))}/></th>`}${column('status', 'task.status')}
        ${column('name', 'task.one')}${column('queue', 'queue.one', 'narrow-hide')}
        ${column('progress', 'task.progress', 'progress-cell')}
        ${column('attempts', 'task.attempts', 'n narrow-hide')}${column('took', 'task.took', 'n narrow-hide')}
        <${Sortable} by="created" made text=${t('task.created')} sort=${sort} onSort=${onSort} kind="n"/>
        </tr></thead>
        <tbody>${tasks.map((task) => html`<${Row} key=${task.id} task=${task}
            selected=${selected.has(task.id)} onSelect=${() => toggle([task.id])}/>`)}</tbody></table></div>`;
}

// Rows follow the stream: at once what it tells, a little later the rest of the rows, which are asked
// for again as far as they are on this page. What is new is counted and shown on request, so that
// nothing jumps.
function useLive(page, filters, order, cursor) {
    const [changes, setChanges] = useState(new Map());
    const [fresh, setFresh] = useState(0);
    const pending = useRef(new Map());
    const timer = useRef(0);
    const items = useRef([]);
    const seen = useRef(new Set());
    useEffect(() => {
        setChanges(new Map());
        setFresh(0);
        items.current = page.data?.items ?? [];
        seen.current = new Set(items.current.map((task) => task.id));
    }, [page.data]);
    useEffect(() => () => clearTimeout(timer.current), []);
    useStream({ queue: filters.queue, type: filters.type }, {
        task(note) {
            if (pending.current.size === 0)
                setTimeout(flush, SOON_MS);
            pending.current.set(note.id, note);
        },
        gap: page.reload,
    });
    const merge = (list) => setChanges((old) => {
        const next = new Map(old);
        for (const one of list)
            if (seen.current.has(one.id) && !(next.get(one.id)?.version > one.version))
                next.set(one.id, one);
        return next;
    });
    async function refresh() {
        timer.current = 0;
        const first = items.current[0];
        if (!first)
            return;
        const before = order ? '' : new Date(Date.parse(first.created_at) + 1).toISOString();
        const again = await loadPage({ created_before: before, ...filters, order, cursor,
            limit: PAGE_ROWS }).catch(() => null);
        if (again && items.current[0] === first)
            merge(again.items);
    }
    function flush() {
        const notes = [...pending.current.values()];
        pending.current = new Map();
        merge(notes);
        if (notes.some((note) => seen.current.has(note.id)))
            timer.current ||= setTimeout(refresh, LATER_MS);
        if (isCounted(filters))
            setFresh((count) => count + notes.filter((note) => !seen.current.has(note.id)
                && (filters.status ? note.status === filters.status : note.version === 1)).length);
    }
    const tasks = useMemo(() => (page.data?.items ?? []).map((task) => {
        const change = changes.get(task.id);
        return change && change.version >= task.version ? { ...task, ...change } : task;
    }), [page.data, changes]);
    return { tasks, fresh };
}

function Selected({ tasks, selected, done }) {
    const chosen = tasks.filter((task) => selected.has(task.id));
    async function each(verb) {
        const fit = chosen.filter((task) => allows(task, verb));
        const results = await Promise.allSettled(fit.map((task) => post(`/v1/tasks/${task.id}:${verb}`)));
        const bad = results.filter((one) => one.status === 'rejected');
        await attempt(async () => {
            if (bad.length)
                throw new Error(tn('bulk.refused', bad.length, { why: bad[0].reason.message }));
        }, tn(`bulk.done.${verb}`, fit.length - bad.length));
        done();
    }
    const button = (verb, kind) => {
        const count = chosen.filter((task) => allows(task, verb)).length;
        return count > 0 && html`<${Button} op=${`POST /v1/tasks/{id}:${verb}`} kind=${kind} onClick=${() => each(verb)}>${tn(
            `bulk.some.${verb}`, count)}<//>`;
    };
    return html`<div class="selection" role="status">${tn('tasks.selected', chosen.length)}
        ${button('cancel', 'danger')}${button('retry', 'primary')}
        <${Button} onClick=${done}>${t('action.none')}<//></div>`;
}

export default function Tasks({ query }) {
    const filters = Object.fromEntries(Object.entries(query).filter(([key]) => FILTERS.includes(key)));
    const order = query.order === 'oldest' ? 'oldest' : '';
    const sort = query.sort ?? (order ? 'created' : '-created');
    const [cursors, setCursors] = useState([null]);
    const [selected, setSelected] = useState(new Set());
    const [bulk, setBulk] = useState(null);
    const key = JSON.stringify([filters, order]);
    const before = useRef(key);
    const cursor = before.current === key ? cursors.at(-1) : null;
    useEffect(() => {
        before.current = key;
        setCursors([null]);
        setSelected(new Set());
    }, [key]);
    const page = useLoad((signal) => loadPage({ ...filters, order, cursor, limit: PAGE_ROWS }, signal),
        [filters, order, cursor]);
    const stats = useLoad(() => get('/v1/stats'), [], 3000);
    const counts = useMemo(() => countsOf(stats.data, filters), [stats.data, key]);
    const { tasks, fresh } = useLive(page, filters, order, cursor);
    const at = cursors.length;
    const change = (next) => replaceQuery({ ...next, order, sort: query.sort });
    function onSort(by) { // all tasks by their making, the rows of this page by anything else
        const made = /^-?created$/.test(by);
        replaceQuery({ ...filters, order: made ? (by === 'created' ? 'oldest' : '') : order,
            sort: made ? '' : by });
    }
    function reload() {
        setSelected(new Set());
        stats.reload();
        return page.reload();
    }
    const open = (verb) => setBulk(verb);
    return html`<${Page} title=${t('nav.tasks')} actions=${html`<a class="button narrow-only" href="#/workflows">${t('workflows.title')}</a>
        ${filters.status && !filters.q && cancellable(filters.status) && html`<${Button} kind="danger"
            op="POST /v1/tasks:cancel" onClick=${() => open('cancel')}>${t('bulk.all.cancel')}<//>`}
        ${filters.status && !filters.q && retryable(filters.status) && html`<${Button}
            op="POST /v1/tasks:retry" onClick=${() => open('retry')}>${t('bulk.all.retry')}<//>`}`}>
        <${FilterBar} filters=${filters} stats=${stats.data} onChange=${change}/>
        <${Chips} filters=${filters} counts=${counts}
            onChoose=${(status) => change({ ...filters, status })}/>
        <${Problem} error=${page.error} retry=${page.reload}/>
        ${selected.size > 0 && html`<${Selected} tasks=${tasks} selected=${selected} done=${reload}/>`}
        ${at === 1 && !order && fresh > 0 && html`<button type="button" class="fresh" onClick=${reload}>${tn(
        'tasks.fresh', fresh)}</button>`}
        ${!page.data && !page.error && html`<${Loading}/>`}
        ${page.data?.next_cursor && tasks.length === 0 && html`<${Empty} title=${t('tasks.noneYet')}
            text=${t('tasks.noneYetText')}><${Button} onClick=${() => setCursors([...cursors,
        page.data.next_cursor])}>${t('tasks.lookOn')}<//><//>`}
        ${page.data && !page.data.next_cursor && tasks.length === 0 && html`<${Empty} title=${t('tasks.empty')}
            text=${Object.keys(filters).length ? t('tasks.emptyFilter') : t('tasks.emptyText')}
            op="POST /v1/tasks" command=${Object.keys(filters).length ? null
        : 'perdura enqueue greet --payload \'{"name":"Ada"}\''}/>`}
        ${tasks.length > 0 && html`<div class=${`card flush ${page.fresh ? '' : 'stale'}`}><${Table}
            tasks=${sorted(tasks, sort)} selected=${selected} setSelected=${setSelected} sort=${sort}
            onSort=${onSort}/></div>`}
        ${(at > 1 || page.data?.next_cursor) && html`<nav class="pager" aria-label=${t('pager.label')}>
            <${Button} disabled=${at === 1} onClick=${() => setCursors([null])}>${t('pager.first')}<//>
            <${Button} disabled=${at === 1} onClick=${() => setCursors(cursors.slice(0, -1))}>${t(
        'pager.back')}<//><span>${t('pager.page', { n: number(at) })}</span>
            <${Button} disabled=${!page.data?.next_cursor || !page.fresh}
                onClick=${() => setCursors([...cursors, page.data.next_cursor])}>${t('pager.next')}<//>
            </nav>`}
        ${bulk && html`<${Bulk} verb=${bulk} filters=${filters} onClose=${() => { setBulk(null);
        reload(); }}/>`}<//>`;
}
