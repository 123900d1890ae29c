// Namespaces: what is in one is not seen from another. Make, limit, delete with all that is in it.
import { html, useMemo, useState } from '../html.js';
import { getAll, name, remove, useLoad } from '../api.js';
import { Button, Empty, Loading, Page, Problem, When } from '../parts/controls.js';
import { FormDialog } from '../parts/dialog.js';
import { Form } from '../parts/form.js';
import { Progress } from '../parts/status.js';
import { namespaceChanges, notify } from '../store.js';
import { duration, number, t } from '../text.js';

const AT = '/v1/namespaces';
const DAY = 24 * 3600e3;
const limited = ['waiting', 'payload_bytes', 'schedules'];

const fieldsOf = (one) => [
    ...(one ? [] : [{ name: 'name', label: t('namespace.name'), required: true }]),
    { name: 'description', label: t('job.description') },
    ...limited.map((key) => ({ name: key, label: t(`namespace.${key}`), kind: 'number', hint: t('namespace.none') })),
    { name: 'count', label: t('namespace.enqueue_rate'), kind: 'number', hint: t('namespace.none') },
    { name: 'completed', label: t('namespace.completed'), kind: 'number', hint: t('namespace.keepHint') },
    { name: 'failed', label: t('namespace.failed'), kind: 'number', hint: t('namespace.keepHint') },
];

const days = (ms) => (ms === null || ms === undefined ? null : ms / DAY);

function flatten(one) {
    return one && { ...one, ...one.limits, count: one.limits.enqueue_rate?.count, completed: days(one.retention.completed_ms),
        failed: days(one.retention.failed_ms) };
}

const shapeFor = (one) => ({ name: given, description, count, completed, failed, ...limits }) => {
    const rate = one?.limits.enqueue_rate; // its other members stay
    const ms = (value) => (value === null ? null : Math.round(value * DAY));
    return { ...(one ? {} : { name: given }), description, limits: { ...limits, enqueue_rate: count === null ? null
        : { per_ms: 1000, ...rate, count } }, retention: { completed_ms: ms(completed), failed_ms: ms(failed) } };
};

function Remove({ one, onClose, done }) {
    const [purge, setPurge] = useState(false);
    const [again, setAgain] = useState('');
    async function drop() {
        if (again !== one.name)
            throw Object.assign(new Error(t('key.notSame', { name: one.name })), { field: 'again' });
        await remove(`${AT}/${name(one.name)}${purge ? '?purge=true' : ''}`);
        notify(t('namespace.removing', { name: one.name }));
        done();
        onClose();
    }
    return html`<${FormDialog} title=${t('namespace.removeTitle', { name: one.name })} onClose=${onClose} onSubmit=${drop} kind="danger"
        submit=${t('action.remove')} names=${['again']} dirty=${again !== ''}>${(error) => html`<p>${t('namespace.removeText')}</p>
        <div class=${`field ${error?.field ? 'wrong' : ''}`}><label for="again">${t('key.again', { name: one.name })}</label>
        <input id="again" type="text" autocomplete="off" spellcheck=${false} value=${again} aria-invalid=${error?.field ? 'true' : null}
            aria-describedby="again-error" onInput=${(event) => setAgain(event.target.value)}/>
        <small id="again-error" class="bad" role="alert">${error?.field ? error.message : ''}</small></div>
        <label class="toggle"><input type="checkbox" checked=${purge} onChange=${(event) => setPurge(event.target.checked)}/> ${t(
        'namespace.purge')}</label>`}<//>`;
}

function Limits({ limits }) {
    const parts = [...limited.filter((key) => limits[key] !== null && limits[key] !== undefined)
        .map((key) => `${t(`namespace.${key}`)}: ${number(limits[key])}`), limits.enqueue_rate
        && `${t('namespace.enqueue_rate')}: ${t('queue.rateText', { count: number(limits.enqueue_rate.count),
            per: duration(limits.enqueue_rate.per_ms ?? 1000) })}`].filter(Boolean);
    return parts.length ? parts.join(' · ') : t('queue.noLimits');
}

function Kept({ retention }) {
    const words = (ms) => (ms === null || ms === undefined ? t('namespace.asSet') : ms === 0 ? t('namespace.forEver') : duration(ms));
    return html`${t('status.completed')}: ${words(retention.completed_ms)}<small>${t('status.failed')}: ${words(
        retention.failed_ms)}</small>`;
}

export default function Namespaces() {
    const list = useLoad(() => getAll(AT), [], 3000);
    const [dialog, setDialog] = useState(null); // { edit: namespace or null } or { drop: namespace }
    const close = () => setDialog(null);
    function changed() {
        namespaceChanges.set(namespaceChanges.get() + 1);
        return list.reload();
    }
    const edited = dialog?.edit ?? null;
    const fields = useMemo(() => fieldsOf(edited), [edited]);
    const button = (verb, op, one, onClick, kind = '') => html`<${Button} op=${op} kind=${`small ${kind}`}
        aria-label=${`${t(`action.${verb}`)}: ${one.name}`} onClick=${onClick}>${t(`action.${verb}`)}<//>`;
    return html`<${Page} title=${t('nav.namespaces')} lead=${t('namespace.lead')} actions=${html`<${Button}
        op=${`POST ${AT}`} kind="primary" onClick=${() => setDialog({ edit: null })}>${t('namespace.new')}<//>`}>
        <${Problem} error=${list.error} retry=${list.reload}/>${!list.data && !list.error && html`<${Loading}/>`}
        ${list.data?.length === 0 && html`<${Empty} title=${t('namespace.empty')}/>`}
        ${list.data?.length > 0 && html`<div class="card flush"><div class="table-place"><table class="stack"><thead><tr>
            <th>${t('namespace.name')}</th><th>${t('queue.limits')}</th><th>${t('namespace.kept')}</th><th>${t('task.created')}</th>
            <th><span class="visually-hidden">${t('actions')}</span></th></tr></thead><tbody>${list.data.map((one) => html`<tr
            key=${one.name}><td class="main"><strong>${one.name}</strong><small>${one.description}</small></td>
            <td class="words" data-label=${t('queue.limits')}><${Limits} limits=${one.limits}/></td>
            <td data-label=${t('namespace.kept')}><${Kept} retention=${one.retention}/></td>
            <td data-label=${t('task.created')}><${When} time=${one.created_at}/></td><td class="row-actions">${one.deleting
        ? html`<${Progress} label=${t('namespace.deleting')} value=${(100 * one.deleting.removed) / Math.max(1, one.deleting.removed
            + one.deleting.left)}/><small>${t('namespace.deleting')}</small>` : html`${button('edit', `PATCH ${AT}/{name}`, one,
            () => setDialog({ edit: one }))}${one.name !== 'default' && button('remove', `DELETE ${AT}/{name}`, one,
            () => setDialog({ drop: one }), 'danger')}`}</td></tr>`)}</tbody></table></div></div>`}
        ${dialog && 'edit' in dialog && html`<${Form} title=${t(edited ? 'action.edit' : 'namespace.new')} fields=${fields}
            thing=${flatten(edited)} shape=${shapeFor(edited)} path=${edited ? `${AT}/${name(edited.name)}` : AT}
            aliases=${{ enqueue_rate: 'count', completed_ms: 'completed', failed_ms: 'failed' }} onClose=${close} done=${changed}/>`}
        ${dialog?.drop && html`<${Remove} one=${dialog.drop} onClose=${close} done=${changed}/>`}<//>`;
}
