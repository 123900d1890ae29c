// What will fire in the next seven days: a row per day of this browser's calendar, a cell per hour. Its
// colour is the power of ten of how often something fires; what fires all the time is listed once,
// below. A dot marks what fires rarely. The chosen hour is listed below. Cells are buttons, so that
// keys reach them.
import { html, useMemo, useState } from '../html.js';
import { get, query, useLoad } from '../api.js';
import { inWords, number, t, tn } from '../text.js';
import { Problem, When } from './controls.js';

const HOUR = 3600e3;
const DAYS = 7;
const LISTED = 50;
const APART = 6; // as often as that in an hour it is one line
const RARE = 0.25; // fires in fewer hours than this part of all
const STEADY = 0.9; // and in more than this: all the time
const STEPS = [1, 2, 10, 100, 1000]; // a colour from so many on
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

// Every instant where they are not too many; else day by day, with those that fire often as one line each,
// which are spread evenly over what they span of the day, and said to be so.
async function load(start, signal) {
    const ask = (fold, from, to) => get(`/v1/forecast${query({ from: new Date(from).toISOString(), fold,
        tz: zone, to: new Date(to).toISOString(), limit: 10000 })}`, { signal });
    const now = Date.now();
    const end = start + DAYS * 24 * HOUR;
    const whole = await ask('false', now, end);
    if (!whole.cut)
        return whole;
    const days = [now];
    while (nextMidnight(days.at(-1)) < end)
        days.push(nextMidnight(days.at(-1)));
    const parts = await Promise.all(days.map((from, at) => ask('true', from, days[at + 1] ?? end)));
    return { items: parts.flatMap((part) => part.items), cut: parts.some((part) => part.cut), about: true };
}

const midnight = (time) => new Date(time).setHours(0, 0, 0, 0);
const nextMidnight = (time) => new Date(time).setHours(24, 0, 0, 0);

// Where an instant stands: its day and hour by the clock on the wall. Days have 23 or 25 hours where
// clocks change, so the days are rounded.
const place = (time, from) => Math.round((midnight(time) - midnight(from)) / (24 * HOUR)) * 24
    + new Date(time).getHours();

// The hours from now on; what is over, comes later or does not exist that day has no cell, and an hour
// that comes twice is one.
function emptyCells(from) {
    const cells = Array.from({ length: (DAYS + 1) * 24 }, () => null);
    for (let at = from; at < from + DAYS * 24 * HOUR; at += HOUR)
        cells[place(at, from)] ??= { at, count: 0, items: [] };
    return cells;
}

// Folded lines (count, every so many seconds until last) are spread over their hours.
function spread(items, from) {
    const cells = emptyCells(from);
    const put = (time, item, count = 1) => {
        const cell = cells[place(time, from)];
        if (!cell)
            return;
        cell.count += count;
        cell.items.push({ ...item, count });
    };
    for (const item of items) {
        const first = Date.parse(item.at);
        if (!item.count || item.count < 2) {
            put(first, item);
            continue;
        }
        const last = Date.parse(item.last);
        const step = (last - first) / (item.count - 1);
        for (let hour = Math.floor((first - from) / HOUR); hour <= (last - from) / HOUR; hour++) {
            const begin = Math.max(first, from + hour * HOUR);
            const end = Math.min(last, from + (hour + 1) * HOUR - 1);
            const count = Math.floor((end - first) / step) - Math.ceil((begin - first) / step) + 1;
            if (count > 0)
                put(begin, { ...item, at: new Date(begin).toISOString() }, count);
        }
    }
    return cells;
}

const plan = (item) => item.schedule_id ?? item.recurring_job_id;
const nameOf = (item) => item.job ?? item.name ?? item.job_id;
const level = (count) => STEPS.filter((step) => count >= step).length;

// Tells what fires all the time, which would give every cell one colour, from the rest; and for each cell the
// names of what fires rarely, where something else would hide it.
function sortOut(cells) {
    const hours = new Map();
    const steady = new Map();
    const known = cells.filter(Boolean);
    for (const cell of known)
        for (const id of new Set(cell.items.map(plan)))
            hours.set(id, (hours.get(id) ?? 0) + 1);
    const part = (item) => hours.get(plan(item)) / known.length;
    for (const cell of known) {
        const rare = cell.items.filter((item) => part(item) < RARE);
        const always = cell.items.filter((item) => part(item) > STEADY);
        for (const [name, items] of Map.groupBy(always, nameOf)) // this hour is partly over: the fullest counts
            steady.set(name, Math.max(steady.get(name) ?? 0, items.reduce((sum, item) => sum + item.count, 0)));
        cell.rare = rare.length < cell.items.length ? [...new Set(rare.map(nameOf))] : [];
        cell.apart = cell.count - always.reduce((sum, item) => sum + item.count, 0);
    }
    return { cells, steady: [...steady].map(([name, each]) => ({ name, each })) };
}

// What fires often within the hour is one line; the rarest come first.
function linesOf(items) {
    const groups = Map.groupBy(items, plan);
    return [...groups.values()].flatMap((group) => {
        const count = group.reduce((sum, item) => sum + item.count, 0);
        return group.length < APART ? group.map((item) => [count, item])
            : [[count, { ...group[0], count, pile_up: group.some((item) => item.pile_up) }]];
    }).sort(([a, one], [b, other]) => a - b || (one.at < other.at ? -1 : 1)).map(([, item]) => item);
}

function Cell({ cell, chosen, onChoose }) {
    if (!cell)
        return html`<td></td>`;
    const among = cell.rare.length ? ` ${t('forecast.among', { names: cell.rare.slice(0, 5).join(', ') })}` : '';
    const label = `${inWords(cell.at, { weekday: 'long', hour: '2-digit', minute: '2-digit' })}: ${tn('forecast.fires',
        cell.count)}${among}`;
    return html`<td><button type="button" class=${`heat heat-${level(cell.apart)} ${cell.count > cell.apart ? 'steady' : ''} ${
        among ? 'rare' : ''}`}
        title=${label} aria-label=${label} aria-pressed=${chosen ? 'true' : 'false'}
        onClick=${onChoose}></button></td>`;
}

function Key({ rare, steady }) {
    const upTo = (at) => (STEPS[at + 1] === undefined ? `${number(STEPS[at])}+` : STEPS[at + 1] === STEPS[at] + 1
        ? number(STEPS[at]) : `${number(STEPS[at])}–${number(STEPS[at + 1] - 1)}`);
    return html`<p class="heat-key faint"><span>${t('forecast.key')}</span>${STEPS.map((step, at) => html`<span
        key=${step}><i class=${`heat heat-${at + 1}`}></i> ${upTo(at)}</span>`)}
        ${rare && html`<span><i class="heat heat-1 rare"></i> ${t('forecast.rare')}</span>`}
        ${steady.length > 0 && html`<span><i class="heat heat-0 steady"></i> ${t('forecast.steady', { names: steady
        .slice(0, 5).map(({ name, each }) => `${name} (${number(each)})`).join(', ')
        + (steady.length > 5 ? ' …' : '') })}</span>`}</p>`;
}

function Chosen({ cell }) {
    const lines = linesOf(cell.items);
    if (lines.length === 0)
        return html`<p class="faint">${t('forecast.nothing')}</p>`;
    return html`<h3><${When} time=${new Date(cell.at).toISOString()}/> · ${tn('forecast.fires', cell.count)}</h3>
        <ul class="fires">${lines.slice(0, LISTED).map((item, index) => html`<li key=${index}><${When}
            time=${item.at}/> <strong>${nameOf(item)}</strong>
            ${item.count > 1 && html` × ${number(item.count)}`}
            ${item.dst && html` <span class="tag warn">${t(`dst.${item.dst}`)}</span>`}
            ${item.pile_up && html` <span class="tag warn">${t('forecast.pileUp')}</span>`}
            ${item.window_wait && html` <span class="tag">${t('forecast.window')}</span>`}</li>`)}
            ${lines.length > LISTED && html`<li class="faint">${t('viewer.more', { n: number(lines.length
        - LISTED) })}</li>`}</ul>`;
}

export function Forecast({ version }) {
    const [from] = useState(() => new Date().setMinutes(0, 0, 0));
    const [chosen, setChosen] = useState(null);
    const forecast = useLoad((signal) => load(from, signal), [from, version], 60000);
    const { cells, steady } = useMemo(() => sortOut(spread(forecast.data?.items ?? [], from)), [forecast.data]);
    const total = cells.reduce((sum, cell) => sum + (cell?.count ?? 0), 0);
    if (forecast.error)
        return html`<${Problem} error=${forecast.error} retry=${forecast.reload}/>`;
    if (forecast.data && total === 0)
        return html`<p class="faint">${t('forecast.none')}</p>`;
    const hours = Array.from({ length: 24 }, (_, at) => at);
    const rows = Array.from({ length: DAYS + 1 }, (_, row) => cells.slice(row * 24, row * 24 + 24))
        .filter((row) => row.some(Boolean));
    const day = (row) => inWords(row.find(Boolean).at, { weekday: 'short', day: 'numeric' });
    return html`<div class="card"><header class="card-head"><h2>${t('forecast.title')}</h2>
        <span class="faint">${tn('forecast.fires', total)} · ${zone}${forecast.data?.about
    ? ` · ${t('forecast.about')}` : ''}${forecast.data?.cut ? ` · ${t('forecast.cut')}` : ''}</span></header>
        <div class="table-place"><table class="heats"><thead><tr><td></td>${hours.map((hour) => html`<th
            key=${hour} scope="col">${hour % 3 === 0 ? `${hour}h` : html`<span
            class="visually-hidden">${hour}h</span>`}</th>`)}</tr></thead>
        <tbody>${rows.map((row, down) => html`<tr key=${down}><th scope="row">${day(row)}</th>
            ${row.map((cell, across) => {
        const at = down * 24 + across;
        return html`<${Cell} key=${at} cell=${cell} chosen=${chosen === at}
                onChoose=${() => setChosen(chosen === at ? null : at)}/>`;
    })}</tr>`)}</tbody></table></div><${Key} steady=${steady}
        rare=${cells.some((cell) => cell?.rare.length)}/>
        ${chosen !== null && html`<${Chosen} cell=${cells[chosen]}/>`}</div>`;
}
