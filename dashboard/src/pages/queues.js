// Queues: what is in them, pause and resume, limits.
import { html, useState } from '../html.js';
import { attempt, getAll, name, patch, post, remove, useLoad } from '../api.js';
import { Button, Empty, Field, Loading, Page, Problem, Select } from '../parts/controls.js';
import { Confirm, FormDialog } from '../parts/dialog.js';
import { link } from '../route.js';
import { duration, number, t } from '../text.js';

const SHOWN = ['pending', 'delayed', 'blocked', 'running', 'failed', 'dead_letter'];

// Where the form shows what the server says about a field.
const FIELDS = { rate: 'count', 'rate.count': 'count', 'rate.per_ms': 'per', ageing_ms: 'ageing' };

function rateText(rate) {
    if (!rate)
        return '–';
    const words = { count: number(rate.count), per: duration(rate.per_ms) };
    return rate.burst ? t('queue.rateBurst', { ...words, burst: number(rate.burst) }) : t('queue.rateText', words);
}

function limitsText(queue) {
    const parts = [
        queue.concurrency !== null && t('queue.atOnce', { n: number(queue.concurrency) }),
        queue.rate && rateText(queue.rate),
        queue.key_concurrency !== null && t('queue.perKey', { n: number(queue.key_concurrency) }),
        queue.key_rate && t('queue.perKey', { n: rateText(queue.key_rate) }),
        ...queue.type_limits.map((one) => `${one.type}: ${one.concurrency !== null
            ? number(one.concurrency) : rateText(one.rate)}`)].filter(Boolean);
    return parts.length ? parts.join(' · ') : t('queue.noLimits');
}

function Limits({ queue, onClose, done }) {
    const [values, setValues] = useState({
        concurrency: queue.concurrency ?? '', key_concurrency: queue.key_concurrency ?? '',
        count: queue.rate?.count ?? '', per: queue.rate ? queue.rate.per_ms / 1000 : 1,
        priority_order: queue.priority_order, ageing: queue.ageing_ms / 1000 });
    const [start] = useState(values);
    const change = (key) => (event) => setValues({ ...values, [key]: event.target.value });
    const whole = (text) => (text === '' ? null : Number(text));
    async function save() {
        try {
            await patch(`/v1/queues/${name(queue.name)}`, {
                concurrency: whole(values.concurrency),
                key_concurrency: whole(values.key_concurrency),
                rate: values.count === '' ? null : { count: Number(values.count),
                    per_ms: Math.round(Number(values.per) * 1000), burst: queue.rate?.burst ?? null },
                priority_order: values.priority_order,
                ageing_ms: Math.round(Number(values.ageing) * 1000) });
        } catch (failure) {
            failure.field = FIELDS[failure.field] ?? failure.field;
            throw failure;
        }
        done();
        onClose();
    }
    const input = (error, key, label, hint) => html`<${Field} label=${label} hint=${hint}
        error=${error?.field === key ? error.message : null}>${(field) => html`<input ...${field} type="number"
            min="0" value=${values[key]} onInput=${change(key)}/>`}<//>`;
    return html`<${FormDialog} title=${t('queue.limitsOf', { name: queue.name })} onClose=${onClose}
        onSubmit=${save} names=${Object.keys(values)} dirty=${JSON.stringify(values) !== JSON.stringify(start)}>
        ${(error) => html`${input(error, 'concurrency', t('queue.concurrency'), t('queue.concurrencyHint'))}
        ${input(error, 'key_concurrency', t('queue.keyConcurrency'), t('queue.keyConcurrencyHint'))}
        <div class="row">${input(error, 'count', t('queue.rate'), t('queue.rateHint'))}
        ${input(error, 'per', t('queue.per'), t('queue.perHint'))}</div>
        <${Field} label=${t('queue.order')}>${(field) => html`<${Select} ...${field}
            value=${values.priority_order} onChange=${(next) => setValues({ ...values,
    priority_order: next })} options=${[['high_first', t('queue.highFirst')],
    ['low_first', t('queue.lowFirst')]]}/>`}<//>
        ${input(error, 'ageing', t('queue.ageing'), t('queue.ageingHint'))}`}<//>`;
}

export default function Queues() {
    const queues = useLoad(() => getAll('/v1/queues'), [], 2000);
    const [edited, setEdited] = useState(null);
    const [asked, setAsked] = useState(null);
    const isEmpty = (queue) => Object.values(queue.counts).every((count) => !count);
    async function drop() {
        await attempt(() => remove(`/v1/queues/${name(asked.name)}`), t('done.remove', { name: asked.name }));
        await queues.reload();
    }
    const turn = (queue, verb) => async () => {
        await attempt(() => post(`/v1/queues/${name(queue.name)}:${verb}`),
            t(`queue.done.${verb}`, { name: queue.name }));
        await queues.reload();
    };
    return html`<${Page} title=${t('nav.queues')} lead=${t('queue.lead')}>
        <${Problem} error=${queues.error} retry=${queues.reload}/>
        ${!queues.data && !queues.error && html`<${Loading}/>`}
        ${queues.data?.length === 0 && html`<${Empty} title=${t('queue.empty')}
            text=${t('queue.emptyText')} op="POST /v1/tasks" command="perdura enqueue greet --queue default"/>`}
        ${queues.data?.length > 0 && html`<div class="card flush"><div class="table-place"><table class="stack">
            <thead><tr><th>${t('queue.name')}</th>${SHOWN.map((status) => html`<th class="n"
                key=${status}>${t(`status.${status}`)}</th>`)}<th>${t('queue.limits')}</th>
            <th><span class="visually-hidden">${t('actions')}</span></th></tr></thead>
            <tbody>${queues.data.map((queue) => html`<tr key=${queue.name}><td class="main"><a
                href=${link('tasks', null, { queue: queue.name })}>${queue.name}</a>
                ${queue.paused && html`<span class="tag warn">${t('queue.paused')}</span>`}</td>
                ${SHOWN.map((status) => html`<td class="n" key=${status} data-label=${t(`status.${status}`)}>${queue.counts[status]
        ? html`<a href=${link('tasks', null, { queue: queue.name, status })}>${number(
            queue.counts[status])}</a>` : html`<span class="faint">0</span>`}</td>`)}
                <td class="words" data-label=${t('queue.limits')}>${limitsText(queue)}</td>
                <td class="row-actions"><${Button} op="PATCH /v1/queues/{name}" kind="small" aria-label=${`${t('queue.limits')}: ${
            queue.name}`} onClick=${() => setEdited(queue)}>${t('queue.limits')}<//>
                ${queue.paused ? html`<${Button} op="POST /v1/queues/{name}:resume" kind="small primary" aria-label=${`${t(
            'action.resume')}: ${queue.name}`} onClick=${turn(queue, 'resume')}>${t('action.resume')}<//>`
        : html`<${Button} op="POST /v1/queues/{name}:pause" kind="small" aria-label=${`${t('action.pause')}: ${queue.name}`}
                    onClick=${turn(queue, 'pause')}>${t('action.pause')}<//>`}
                ${isEmpty(queue) && html`<${Button} op="DELETE /v1/queues/{name}" kind="small danger" aria-label=${`${t('action.remove')}: ${
            queue.name}`} onClick=${() => setAsked(queue)}>${t('action.remove')}<//>`}</td></tr>`)}</tbody>
            </table></div></div>`}
        ${asked && html`<${Confirm} title=${t('confirm.queue', { name: asked.name })} kind="danger"
            text=${t('confirm.queueText')} action=${t('action.remove')} onConfirm=${drop}
            onClose=${() => setAsked(null)}/>`}
        ${edited && html`<${Limits} queue=${edited} onClose=${() => setEdited(null)}
            done=${queues.reload}/>`}<//>`;
}
