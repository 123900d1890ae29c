// How a task looks in one word: its status as a badge, its progress as a bar; and which buttons it
// gets. What is really allowed is decided by the server.
import { html } from '../html.js';
import { statusText, t } from '../text.js';

export const STATUSES = ['blocked', 'delayed', 'pending', 'claimed', 'running', 'paused', 'orphaned',
    'recovering', 'completed', 'partial', 'failed', 'dead_letter', 'cancelled'];
export const ENDED = new Set(['completed', 'partial', 'failed', 'dead_letter', 'cancelled']);
export const HELD = new Set(['claimed', 'running']);

const can = {
    cancel: (task) => !ENDED.has(task.status),
    retry: (task) => ENDED.has(task.status) || task.status === 'orphaned',
    pause: (task) => ['pending', 'delayed', 'blocked'].includes(task.status)
        || (HELD.has(task.status) && !task.pause_requested),
    resume: (task) => task.status === 'paused' || (HELD.has(task.status) && task.pause_requested),
    recover: (task) => ['orphaned', 'partial'].includes(task.status),
    prioritize: (task) => !ENDED.has(task.status),
    remove: (task) => ENDED.has(task.status),
};
export const allows = (task, verb) => can[verb](task);

// How long it ran, or runs by now; null while it neither runs nor has ended: the clock stops for a
// task that lost its worker, waits for its next attempt or was paused.
export function ranMs(task, now = Date.now()) {
    if (!task.started_at || !(task.completed_at || HELD.has(task.status)))
        return null;
    return (task.completed_at ? Date.parse(task.completed_at) : now) - Date.parse(task.started_at);
}

export const cancellable = (status) => can.cancel({ status });
export const retryable = (status) => can.retry({ status });

export function Status({ status }) {
    return html`<span class=${`status ${status}`}><i aria-hidden="true"></i>${statusText(status)}</span>`;
}

export function Progress({ value, status, label }) {
    const percent = Math.max(0, Math.min(100, value ?? 0));
    return html`<span class=${`progress ${status ?? ''}`} role="progressbar" aria-valuemin="0"
        aria-valuemax="100" aria-valuenow=${percent} aria-label=${label ?? t('task.progress')}>
        <i style=${{ width: `${percent}%` }}></i></span>`;
}
