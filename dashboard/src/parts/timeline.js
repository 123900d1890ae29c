// What happened to a task: its attempts as bars over time, its events as a list, newest first.
import { html, useRef, useState } from '../html.js';
import { attempt, get, name } from '../api.js';
import { clock, duration, fullTime, relative, statusText, t } from '../text.js';
import { Button } from './controls.js';
import { isSealed, Sealed, shownText } from './sealed.js';

function Attempts({ task, executions }) {
    const list = executions.filter((one) => one.started_at ?? one.created_at).slice(0, 30).reverse();
    if (list.length === 0)
        return null;
    const begin = Date.parse(task.created_at);
    const endOf = (one) => Date.parse(one.completed_at ?? one.failed_at ?? new Date().toISOString());
    const end = Math.max(...list.map(endOf), begin + 1);
    const place = (time) => `${((time - begin) / (end - begin)) * 100}%`;
    return html`<ol class="attempts" aria-label=${t('task.executions')}>${list.map((one) => {
        const from = Date.parse(one.started_at ?? one.created_at);
        const took = one.duration_ms ?? endOf(one) - from;
        const released = one.error_data?.reason === 'released'; // its worker gave it back
        const error = !released && (isSealed(one.error_data) ? one.error_data
            : one.error_data?.error ?? one.error_data?.message ?? one.error_data?.reason);
        return html`<li key=${one.id}><span class="attempt-name">${t('task.attempt',
            { n: one.attempt_number })}</span><span class="attempt-track"><i
            class=${`bar ${one.status}`} style=${{ left: place(from),
            width: `max(3px, ${((endOf(one) - from) / (end - begin)) * 100}%)` }}></i></span>
            <span class="attempt-text">${[t(`execution.${released ? 'released' : one.status}`), duration(took), one.worker_id]
                .filter(Boolean).join(' · ')}${error && html`${' · '}<span
                class="bad">${isSealed(error) ? shownText(error) : String(error)}</span>`}</span></li>`;
    })}</ol>`;
}

const QUIET = new Set(['lease_token', 'payload_bytes']); // true, but of no use to a reader

function words(detail) {
    if (!detail || typeof detail !== 'object')
        return '';
    return Object.entries(detail).filter(([key, value]) => !QUIET.has(key) && value !== 0).map(([key, value]) => `${key}: ${typeof value === 'object'
        ? JSON.stringify(value) : value}`).join(', ');
}

// The newest events come with every change; those that were seen stay, and older ones are read on request.
function useEvents(base, page) {
    const seen = useRef(new Map());
    const [cursor, setCursor] = useState(undefined);
    const add = (items) => items.forEach((event) => seen.current.set(event.seq, event));
    add(page?.items ?? []);
    const next = cursor === undefined ? page?.next_cursor : cursor;
    const older = () => attempt(async () => {
        const more = await get(`${base}/events?limit=100&cursor=${name(next)}`);
        add(more.items);
        setCursor(more.next_cursor);
    });
    return { events: [...seen.current.values()].sort((a, b) => b.seq - a.seq), older: next ? older : null };
}

export function Timeline({ base, task, page, executions }) {
    const { events, older } = useEvents(base, page);
    return html`<div class="card"><${Attempts} task=${task} executions=${executions}/>
        <ol class="timeline" aria-label=${t('task.timeline')}>${events.map((event, at) => {
        const before = events[at + 1];
        const since = before && Date.parse(event.created_at) - Date.parse(before.created_at);
        return html`<li key=${event.seq} class=${event.status}><i aria-hidden="true"></i>
            <div><strong>${statusText(event.status)}</strong> ${event.state
            && event.state.toLowerCase() !== event.status && html`<em>${event.state}</em>`}
            <span class="faint">${t(`actor.${event.actor}`)}${
            event.principal && `, ${event.principal}`}</span>
            ${isSealed(event.detail) ? html`<p><${Sealed} value=${event.detail}/></p>` : words(event.detail)
            && html`<p>${words(event.detail)}</p>`}</div>
            <div class="when"><time datetime=${event.created_at} title=${fullTime(event.created_at)}>${
            clock(event.created_at)}</time><small>${since !== undefined ? `+${duration(since)}`
            : relative(event.created_at)}</small></div></li>`;
    })}</ol>${older && html`<${Button} kind="small" onClick=${older}>${t('timeline.older')}<//>`}</div>`;
}
