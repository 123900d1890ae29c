// What will fire in the next seven days: a row per day of this browser's calendar, a cell per hour,
// darker the more; the hour that is chosen is listed below. Cells are buttons, so that keys reach
// them.
import { html, useMemo, useState } from '../html.js';
import { get, query, useLoad } from '../api.js';
import { inWords, number, t, tn } from '../text.js';
import { Problem, When } from './controls.js';

const HOUR = 3600e3;
const DAYS = 7;
const LISTED = 50;
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

// Every instant where they are not too many; else those that fire often as one line each, which are
// spread evenly and said to be so.
async function load(from) {
    const ask = (fold) => get(`/v1/forecast${query({ from: new Date().toISOString(), fold, tz: zone,
        to: new Date(from + DAYS * 24 * HOUR).toISOString(), limit: 10000 })}`);
    const whole = await ask('false');
    return whole.cut ? { ...await ask('true'), about: true } : whole;
}

const midnight = (time) => new Date(time).setHours(0, 0, 0, 0);

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

const level = (count, most) => (count === 0 ? 0 : Math.ceil((Math.log1p(count) / Math.log1p(most)) * 5));

function Cell({ cell, most, chosen, onChoose }) {
    if (!cell)
        return html`<td></td>`;
    const label = `${inWords(cell.at, { weekday: 'long', hour: '2-digit', minute: '2-digit' })}: ${tn('forecast.fires', cell.count)}`;
    return html`<td><button type="button" class=${`heat heat-${level(cell.count, most)}`} title=${label}
        aria-label=${label} aria-pressed=${chosen ? 'true' : 'false'} onClick=${onChoose}></button></td>`;
}

function Chosen({ cell }) {
    if (cell.items.length === 0)
        return html`<p class="faint">${t('forecast.nothing')}</p>`;
    return html`<h3><${When} time=${new Date(cell.at).toISOString()}/> · ${tn('forecast.fires', cell.count)}</h3>
        <ul class="fires">${cell.items.slice(0, LISTED).map((item, index) => html`<li key=${index}><${When}
            time=${item.at}/> <strong>${item.job ?? item.name ?? item.job_id}</strong>
            ${item.count > 1 && html` × ${number(item.count)}`}
            ${item.dst && html` <span class="tag warn">${t(`dst.${item.dst}`)}</span>`}
            ${item.pile_up && html` <span class="tag warn">${t('forecast.pileUp')}</span>`}
            ${item.window_wait && html` <span class="tag">${t('forecast.window')}</span>`}</li>`)}</ul>`;
}

export function Forecast({ version }) {
    const [from] = useState(() => new Date().setMinutes(0, 0, 0));
    const [chosen, setChosen] = useState(null);
    const forecast = useLoad(() => load(from), [from, version], 60000);
    const cells = useMemo(() => spread(forecast.data?.items ?? [], from), [forecast.data]);
    const most = Math.max(1, ...cells.map((cell) => cell?.count ?? 0));
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
        return html`<${Cell} key=${at} cell=${cell} most=${most} chosen=${chosen === at}
                onChoose=${() => setChosen(chosen === at ? null : at)}/>`;
    })}</tr>`)}</tbody></table></div>
        ${chosen !== null && html`<${Chosen} cell=${cells[chosen]}/>`}</div>`;
}
