// The overview: is everything all right, how much is done, how long does it wait, who does it.
// History comes from /v1/stats/history, the newest seconds from the stream's stats event.
import { html, useMemo, useRef, useState } from '../html.js';
import { get, getAll, useLoad } from '../api.js';
import { Card, Empty, Loading, Page, Problem, Select } from '../parts/controls.js';
import { Chart, Spark } from '../parts/chart.js';
import { Now } from '../parts/now.js';
import { link } from '../route.js';
import { useStream } from '../stream.js';
import { duration, has, number, shortNumber, t, tn } from '../text.js';

const WINDOWS = ['15m', '1h', '6h', '24h'];
const SECONDS_KEPT = 120;
const COLOURS = ['--blue', '--amber', '--violet', '--green', '--red'];
const LEAST_POINTS = 24; // of a chart, known or not
const sum = (list) => list.reduce((all, value) => all + (value ?? 0), 0);

// Points of the history, of all queues or of one, and behind them a step made of the seconds that came
// since. A second is { at, queues: Map of name to counts }.
function withSeconds(history, all, queue) {
    const none = {};
    const seconds = all.map((one) => (queue ? { at: one.at, ...one.queues.get(queue) } : one));
    const step = history.step_ms / 1000;
    const from = Date.parse(history.from) / 1000;
    const times = Array.from({ length: history.points }, (_, at) => from + at * step);
    const series = (values, scale) => (values ?? []).map((one) => (one === null ? null : one * scale));
    const total = queue ? history.queues.find((one) => one.queue === queue) ?? none : history.total;
    const made = {
        times,
        enqueued: series(total.enqueued, 1 / step),
        completed: series(total.completed, 1 / step),
        failed: series(total.failed, 1 / step),
        waiting: series(total.waiting ?? times.map(() => null), 1),
        running: series(total.running, 1),
        wait50: series(total.wait_p50_ms, 1),
        wait99: series(total.wait_p99_ms, 1),
        run50: series(total.run_p50_ms, 1),
        run99: series(total.run_p99_ms, 1),
    };
    made.each = queue ? [] : largest(history.queues).map((one) => ({ label: one.queue,
        values: series(one.waiting, 1) }));
    const known = made.waiting.findIndex((value) => value !== null);
    const unknown = Math.min(known < 0 ? 0 : known, times.length - LEAST_POINTS);
    if (unknown > 0) // the server is young: no more empty space than needed
        [...Object.values(made), ...made.each.map((one) => one.values)].filter((values) => values
            !== made.each).forEach((values) => values.splice(0, unknown));
    const end = from + history.points * step;
    const fresh = seconds.filter((one) => one.at >= end);
    if (fresh.length) {
        const last = fresh.at(-1);
        times.push(last.at);
        for (const key of ['enqueued', 'completed', 'failed'])
            made[key].push(last[key] === null ? null // not known, which is not none
                : sum(fresh.map((one) => one[key])) / fresh.length);
        made.waiting.push(last.waiting ?? null);
        made.running.push(last.running ?? null);
        made.each.forEach((one) => one.values.push(all.at(-1).queues.get(one.label)?.waiting ?? null));
        for (const key of ['wait50', 'wait99', 'run50', 'run99'])
            made[key].push(null);
    }
    return made;
}

// The queues that had most to wait for.
function largest(queues) {
    const most = (queue) => Math.max(0, ...(queue.waiting ?? []).map((value) => value ?? 0));
    return queues.length < 2 ? [] : [...queues].sort((a, b) => most(b) - most(a))
        .slice(0, COLOURS.length);
}

function useSeconds(reload) {
    const [seconds, setSeconds] = useState([]);
    const kept = useRef([]);
    useStream({ stats: 'only' }, {
        stats(data) {
            const of = (key) => sum(data.queues.map((queue) => queue[key]));
            kept.current = [...kept.current.slice(-SECONDS_KEPT), {
                at: Date.parse(data.at) / 1000,
                queues: new Map(data.queues.map((one) => [one.queue, one])), waiting: of('waiting'), running: of('running'),
                completed: of('completed'), failed: of('failed'), enqueued: of('enqueued') }];
            setSeconds(kept.current);
        },
        gap: reload,
    });
    return seconds;
}

function Tile({ label, value, unit, kind = '', href }) {
    const inside = html`<span class="tile-label">${label}</span><span class="tile-value">${value}
        ${unit && html`<small>${unit}</small>`}</span>`;
    return href ? html`<a class=${`tile ${kind}`} href=${href}>${inside}</a>`
        : html`<div class=${`tile ${kind}`}>${inside}</div>`;
}

function Tiles({ stats, seconds, history, workers }) {
    const counts = stats.counts;
    const now = seconds.at(-1);
    const waiting = now?.waiting ?? counts.pending + counts.delayed + counts.blocked;
    const running = now?.running ?? counts.running + counts.claimed;
    const recent = seconds.slice(-10);
    const rate = (key) => (recent.length ? sum(recent.map((one) => one[key])) / recent.length : null);
    const p99 = history?.total.wait_p99_ms?.findLast((value) => value !== null);
    const live = workers?.filter((one) => one.pool_size > 0 && Date.parse(one.lease_until) > Date.now())
        ?? []; // a server without handlers of its own runs nothing
    const leader = workers?.find((one) => one.is_leader);
    return html`<div class="tiles">
        <${Tile} label=${t('overview.waiting')} value=${shortNumber(waiting)}
            href=${link('tasks', null, { status: 'pending' })}/>
        <${Tile} label=${t('overview.running')} value=${shortNumber(running)} kind="running"
            href=${link('tasks', null, { status: 'running' })}/>
        <${Tile} label=${t('overview.throughput')} value=${shortNumber(rate('completed'))} unit="/s"
            kind="completed"/>
        <${Tile} label=${t('overview.failures')} value=${shortNumber(rate('failed'))} unit="/s"
            kind=${rate('failed') ? 'failed' : ''}/>
        <${Tile} label=${t('overview.waitP99')} value=${duration(p99)}/>
        <${Tile} label=${t('overview.dead')} value=${shortNumber(counts.dead_letter)}
            kind=${counts.dead_letter ? 'failed' : ''} href="#/recovery?tab=dead"/>
        <${Tile} label=${t('overview.workers')} value=${number(live.length)} href="#/workers"
            kind=${live.length || !workers ? '' : 'failed'}/>
        <${Tile} label=${t('overview.leader')} value=${leader ? leader.hostname || leader.id : '–'}
            kind="words" href="#/workers"/>
    </div>`;
}

// Where one can look at what an alert tells of.
const PLACES = { no_worker: () => link('workers'), unclaimed: () => link('workers'),
    failure_rate: (queue) => link('tasks', null, { queue, status: 'failed' }), dead_letters: (queue) => link('tasks', null, { queue, status: 'dead_letter' }),
schedules_in_error: () => link('schedules') };

// In the reader's language; a code that this page does not know in the server's words.
function alertText({ code, text, n = 0, of = 0 }) {
    const key = `alert.${code}`;
    return has(key) ? t(key, { n: number(n), of: number(of) }) : has(`${key}.other`) ? tn(key, n) : text;
}

// Those that have none of their own are judged together.
const alertQueue = ({ code, queue }) => (queue ? html`<code>${queue}</code>: `
    : ['failure_rate', 'dead_letters'].includes(code) ? `${t('alert.others')}: ` : '');

function Alerts({ alerts }) {
    if (!alerts)
        return null;
    if (alerts.length === 0)
        return html`<p class="all-well"><i aria-hidden="true"></i>${t('overview.well')}</p>`;
    return html`<ul class="alerts" aria-label=${t('overview.alerts')}>${alerts.map((one) => html`<li
        key=${one.code + (one.queue ?? '')} class=${one.severity}><strong>${t(
        `severity.${one.severity}`)}</strong> ${alertQueue(one)}${alertText(one)} ${PLACES[one.code]
        && html`<a href=${PLACES[one.code](one.queue)}>${t('action.look')}</a>`}</li>`)}</ul>`;
}

function Charts({ data }) {
    const perSecond = (value) => (value === null ? '–' : `${shortNumber(value)}/s`);
    return html`<div class="grid">
        <${Card} title=${t('overview.throughput')} id="c1"><${Chart} label=${t('overview.throughput')}
            times=${data.times} format=${perSecond} series=${[
    { label: t('series.enqueued'), colour: '--blue', values: data.enqueued },
    { label: t('series.completed'), colour: '--green', values: data.completed, fill: true },
    { label: t('series.failed'), colour: '--red', values: data.failed }]}/><//>
        <${Card} title=${t('overview.backlog')} id="c2"><${Chart} label=${t('overview.backlog')}
            times=${data.times} series=${data.each.length ? data.each.map((one, at) => ({ ...one,
    colour: COLOURS[at] })) : [
    { label: t('series.waiting'), colour: '--amber', values: data.waiting, fill: true },
    { label: t('series.running'), colour: '--violet', values: data.running }]}/><//>
        <${Card} title=${t('overview.wait')} id="c3"><${Chart} label=${t('overview.wait')}
            times=${data.times} format=${duration} series=${[
    { label: 'p50', colour: '--blue', values: data.wait50 },
    { label: 'p99', colour: '--violet', values: data.wait99 }]}/><//>
        <${Card} title=${t('overview.run')} id="c4"><${Chart} label=${t('overview.run')}
            times=${data.times} format=${duration} series=${[
    { label: 'p50', colour: '--blue', values: data.run50 },
    { label: 'p99', colour: '--violet', values: data.run99 }]}/><//>
    </div>`;
}

function Queues({ stats, history }) {
    const past = new Map((history?.queues ?? []).map((one) => [one.queue, one]));
    return html`<${Card} title=${t('overview.queues')} id="c5" wide
        extra=${html`<a href="#/queues">${t('action.all')}</a>`}>
        <div class="table-place"><table class="stack"><thead><tr><th>${t('queue.name')}</th>
        <th>${t('overview.backlogNow')}</th><th class="n">${t('status.pending')}</th>
        <th class="n">${t('status.delayed')}</th><th class="n">${t('status.running')}</th>
        <th class="n">${t('status.completed')}</th><th class="n">${t('status.dead_letter')}</th></tr></thead>
        <tbody>${stats.queues.map((queue) => html`<tr key=${queue.name}><td><a
            href=${link('tasks', null, { queue: queue.name })}>${queue.name}</a> ${queue.paused
    && html`<span class="tag warn">${t('queue.paused')}</span>`}</td>
            <td><${Spark} values=${past.get(queue.name)?.waiting ?? []}
                label=${`${t('overview.backlog')}: ${queue.name}`}/></td>
            ${['pending', 'delayed', 'running', 'completed', 'dead_letter'].map((status) => html`<td
                class="n" key=${status} data-label=${t(`status.${status}`)}>${number(queue.counts[status])}</td>`)}</tr>`)}</tbody>
        </table></div>${stats.cut && html`<p class="faint">${t('overview.cut')}</p>`}<//>`;
}

function Executions({ list }) {
    const rows = (list ?? []).filter((one) => one.total > 0);
    if (rows.length === 0)
        return null;
    return html`<${Card} title=${t('overview.executions')} id="c6" wide>
        <div class="table-place"><table class="stack"><thead><tr><th>${t('executions.period')}</th>
        <th>${t('executions.category')}</th><th class="n">${t('executions.total')}</th>
        <th class="n">${t('executions.failed')}</th><th class="n">${t('executions.rate')}</th>
        <th class="n">${t('executions.average')}</th></tr></thead><tbody>${rows.map((one) => html`<tr
        key=${one.period + one.category}><td>${has(`period.${one.period}`)
    ? t(`period.${one.period}`) : one.period}</td><td>${one.category
    ?? t('executions.all')}</td><td class="n" data-label=${t('executions.total')}>${number(one.total)}</td><td
        class="n" data-label=${t('executions.failed')}>${number(one.failed)}</td><td class="n"
        data-label=${t('executions.rate')}>${one.success_rate === null ? '–'
        : `${number(one.success_rate * 100)} %`}</td>
        <td class="n" data-label=${t('executions.average')}>${duration(one.average_duration_ms)}</td></tr>`)}</tbody></table></div><//>`;
}

export default function Overview() {
    const [queue, setQueue] = useState('');
    const [span, setSpan] = useState(localStorage.getItem('perdura.window') ?? '15m');
    const stats = useLoad(() => get('/v1/stats'), [], 5000);
    const history = useLoad(() => get(`/v1/stats/history?window=${span}`), [span],
        span === '15m' || span === '1h' ? 10000 : 60000);
    const workers = useLoad(() => getAll('/v1/workers'), [], 5000);
    const seconds = useSeconds(() => { stats.reload(); history.reload(); });
    const data = useMemo(() => history.data && withSeconds(history.data, seconds, queue),
        [history.data, seconds, queue]);
    function choose(next) {
        localStorage.setItem('perdura.window', next);
        setSpan(next);
    }
    if (!stats.data)
        return html`<${Page} title=${t('nav.overview')}>${stats.error
            ? html`<${Problem} error=${stats.error} retry=${stats.reload}/>` : html`<${Loading}/>`}<//>`;
    const all = sum(Object.values(stats.data.counts));
    return html`<${Page} title=${t('nav.overview')} lead=${t('overview.lead', {
        version: stats.data.version, store: stats.data.store, up: duration(stats.data.uptime_ms) })}
        actions=${html`<${Select} value=${queue} onChange=${setQueue} aria-label=${t('queue.one')}
            options=${[['', t('overview.allQueues')], ...stats.data.queues.map((one) => [one.name, one.name])]}/>
            <${Select} value=${span} onChange=${choose} aria-label=${t('overview.window')}
            options=${WINDOWS.map((one) => [one, t(`window.${one}`)])}/>`}>
        <${Problem} error=${stats.error} retry=${stats.reload}/>
        <${Alerts} alerts=${stats.data.alerts}/>
        <${Tiles} stats=${stats.data} seconds=${seconds} history=${history.data}
            workers=${workers.data}/>
        ${all === 0 && html`<${Empty} title=${t('overview.empty')} text=${t('overview.emptyText')}
            op="POST /v1/tasks" command=${'perdura enqueue greet --payload \'{"name":"Ada"}\''}/>`}
        ${all > 0 && html`<${Now} counts=${stats.data.counts}/>`}
        <${Problem} error=${history.error} retry=${history.reload}/>
        ${data && html`<${Charts} data=${data}/>`}
        ${stats.data.queues.length > 0 && html`<${Queues} stats=${stats.data} history=${history.data}/>`}
        <${Executions} list=${stats.data.executions}/>
        <p class="visually-hidden" aria-live="off">${tn('overview.count', all)}</p><//>`;
}
