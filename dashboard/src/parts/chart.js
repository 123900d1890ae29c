// Lines over time: uPlot in the colours of the theme, as wide as its place, with a legend that tells
// the newest values, or those under the pointer. The canvas is a picture for screen readers.
import uPlot from 'uplot';
import { html, useEffect, useRef, useState } from '../html.js';
import { theme, useStore } from '../store.js';
import { clock, shortNumber } from '../text.js';

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function options(series, format, width, height, onPoint) {
    const ink = colour('--faint');
    const grid = { stroke: colour('--line'), width: 1 };
    return {
        width,
        height,
        padding: [12, 8, 0, 0],
        cursor: { y: false, points: { size: 6 } },
        legend: { show: false },
        hooks: { setCursor: [(plot) => onPoint(plot.cursor.idx ?? null)] },
        scales: { y: { range: (_, low, high) => [0, Math.max(high * 1.1, 1)] } },
        axes: [
            { stroke: ink, grid: { show: false }, ticks: { show: false }, size: 26, gap: 6,
                font: '11px system-ui', space: 70, values: (_, ticks) => ticks.map((at) => clock(at * 1000)
                    .replace(/:00( [AP]M)?$/, '$1')) },
            { stroke: ink, grid, ticks: { show: false }, size: 56, font: '11px system-ui',
                values: (_, ticks) => ticks.map((tick) => format(tick)) },
        ],
        series: [
            {},
            ...series.map((one) => ({
                label: one.label,
                stroke: colour(one.colour),
                fill: one.fill ? `${colour(one.colour)}22` : undefined,
                width: 1.75,
                points: { show: false },
                spanGaps: false,
            })),
        ],
    };
}

// times: seconds; series: [{ label, colour: '--css-variable', fill, values }]
export function Chart({ label, times, series, format = shortNumber, height = 200 }) {
    const place = useRef(null);
    const plot = useRef(null);
    const chosen = useStore(theme);
    const [point, setPoint] = useState(null);
    const shape = JSON.stringify([chosen, series.map((one) => [one.label, one.colour])]);

    useEffect(() => {
        const box = place.current;
        const data = [times, ...series.map((one) => one.values)];
        const make = () => {
            plot.current?.destroy();
            plot.current = new uPlot(options(series, format, Math.max(box.clientWidth, 200), height,
                setPoint), data, box);
        };
        make();
        const watch = new ResizeObserver(() => plot.current?.setSize(
            { width: Math.max(box.clientWidth, 200), height }));
        watch.observe(box);
        const system = matchMedia('(prefers-color-scheme: dark)');
        system.addEventListener('change', make);
        return () => {
            watch.disconnect();
            system.removeEventListener('change', make);
            plot.current?.destroy();
            plot.current = null;
        };
    }, [shape]);
    useEffect(() => plot.current?.setData([times, ...series.map((one) => one.values)]),
        [times, series]);

    const last = (values) => values.findLast((value) => value !== null && value !== undefined) ?? null;
    const told = (one) => format(point === null ? last(one.values) : one.values[point] ?? null);
    return html`<div><ul class="chart-legend">${series.map((one) => html`<li key=${one.label}><i
        class=${one.colour.slice(2)} aria-hidden="true"></i>${one.label} <strong>${told(one)}</strong></li>`)}
        ${point !== null && html`<li class="faint">${clock(times[point] * 1000)}</li>`}</ul>
        <div class="chart" role="img" aria-label=${label} ref=${place}></div></div>`;
}

// A line without axes, for tables.
export function Spark({ values, label }) {
    const known = values.map((value) => value ?? 0);
    const high = Math.max(...known, 1);
    const step = 120 / Math.max(known.length - 1, 1);
    const points = known.map((value, at) => `${(at * step).toFixed(1)},${(27 - (value / high) * 25)
        .toFixed(1)}`).join(' ');
    return html`<svg class="spark" viewBox="0 0 120 28" preserveAspectRatio="none" role="img"
        aria-label=${label}><polyline points=${`0,28 ${points} 120,28`} class="area"/>
        <polyline points=${points} class="line"/></svg>`;
}
