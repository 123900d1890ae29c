// What a schedule would do, while it is typed: in words, and the next instants with their year, by the
// clock of its zone; or what is wrong. Where that clock is about to change, it says so.
import { html, useEffect, useState } from '../html.js';
import { post } from '../api.js';
import { inWords, relative, t } from '../text.js';
import { besideText, changeAfter, clockText, here, isZone, offsetAt } from './zone.js';

const AFTER_MS = 200;

// path takes the body and answers { items, explain }; about goes with the answer, as it was asked for.
export function usePreview(path, body, about) {
    const [state, setState] = useState({ answer: null, error: null });
    const key = JSON.stringify([path, body]);
    useEffect(() => {
        let mine = true;
        const timer = setTimeout(() => body && post(path, body).then(
            (answer) => mine && setState({ answer, error: null, ...about }),
            (error) => mine && setState({ answer: null, error })), AFTER_MS);
        return () => { mine = false; clearTimeout(timer); };
    }, [key]);
    return state;
}

const longDay = (time, timeZone) => inWords(time, { dateStyle: 'full', timeZone });

// byClock: it fires by the clock on the wall, so that a change of the clock matters.
function Instants({ items, zone, byClock }) {
    const seconds = items.some((time) => !/:00(\.0+)?Z$/.test(time));
    const now = Date.now();
    const change = byClock && changeAfter(zone, now);
    return html`<ol>${items.map((time, at) => {
        const offset = offsetAt(zone, time);
        const before = offsetAt(zone, items[at - 1] ?? now);
        return html`<li key=${time}><time datetime=${time}>${clockText(time, zone, seconds)}</time>
            ${' '}<span class="faint">${relative(time)}${offsetAt(here, time) === offset ? ''
    : ` · ${t('preview.here', { time: besideText(time, zone, seconds) })}`}</span>
            ${byClock && offset !== before && html` <span class="tag warn">${t('dst.clock_change')}</span>`}</li>`;
    })}</ol><p class="faint">${t('preview.zone', { zone })}${change ? ` ${t(change.by > 0
        ? 'preview.forward' : 'preview.back', { minutes: Math.abs(change.by), day: longDay(change.at, zone) })}`
        : ''}</p>`;
}

export function Preview({ answer, error, zone, byClock }) {
    return html`<div class=${`preview ${error ? 'wrong' : ''}`} role="status" aria-live="polite">
        ${error && html`<p class="bad">${error.message}</p>`}
        ${answer && html`<p><strong>${answer.explain}</strong></p>
            ${answer.items.length > 0 ? html`<${Instants} items=${answer.items} byClock=${byClock}
                zone=${isZone(zone) ? zone : 'UTC'}/>` : html`<p class="faint">${t('preview.never')}</p>`}`}
        ${!answer && !error && html`<p class="faint">${t('preview.type')}</p>`}</div>`;
}
