// API tokens: who has one, what it allows and what it is limited to; make, rotate, revoke. A secret is
// shown once, and the dialog that shows it asks before it goes.
import { html, useLayoutEffect, useMemo, useRef, useState } from '../html.js';
import { askWho, attempt, getAll, isKeptHere, keepToken, post, remove, useLoad } from '../api.js';
import { Ago, Button, Command, Empty, Field, Loading, Page, Problem, Select, When } from '../parts/controls.js';
import { Confirm, Dialog, FormDialog } from '../parts/dialog.js';
import { Form } from '../parts/form.js';
import { limitsOf, Scopes } from '../parts/who.js';
import { hasScope, isGlobal, may, ROLES, SCOPES } from '../rights.js';
import { link, replaceQuery } from '../route.js';
import { session, useStore } from '../store.js';
import { duration, number, t, tn } from '../text.js';

const MINUTE = 60e3;
const DAY = 24 * 60 * MINUTE;
const OVERLAPS = [0, 10 * MINUTE, 60 * MINUTE, DAY, 7 * DAY];
const LIVES = [7, 30, 90, 365];
const isFirst = () => session.get().who?.kind === 'local'; // its maker must not be locked out
const canGive = (scopes) => scopes.every(hasScope); // no more than one has
const quoted = (text) => (/^[\w.*:,-]+$/.test(text) ? text : `'${text.replaceAll('\'', '\'\\\'\'')}'`);

function tokenFields() {
    const own = (values) => values.role === 'own';
    const names = (name, label) => ({ name, label, kind: 'words', hint: t('token.namesHint') });
    return [
        { name: 'name', label: t('token.name'), required: true, hint: t('token.nameHint') },
        { name: 'role', label: t('token.role'), kind: 'select', fallback: isFirst() ? 'admin'
            : Object.keys(ROLES).find((role) => canGive(ROLES[role])) ?? 'own',
            hint: (values) => ROLES[values.role]?.map((scope) => t(`scope.${scope}`)).join('; '),
            options: [...Object.keys(ROLES).filter((role) => canGive(ROLES[role])), 'own']
                .map((role) => [role, t(`role.${role}`)]) },
        { name: 'scopes', label: t('token.scopes'), kind: 'many', required: true, show: own,
            options: SCOPES.filter(hasScope).map((scope) => [scope, scope, t(`scope.${scope}`)]) },
        { name: 'life', label: t('token.expires'), kind: 'select', fallback: isFirst() ? 'never' : '90',
            options: [...LIVES.map((days) => [String(days), tn('token.days', days)]), ['at', t('token.at')],
                ['never', t('token.never')]] },
        { name: 'expires_at', label: t('token.expiresAt'), kind: 'instant', required: true,
            show: (values) => values.life === 'at' },
        ...(isGlobal() ? [{ name: 'namespace', label: t('namespace.one'), hint: t('token.namespaceHint') }] : []),
        { name: 'user_id', label: t('token.user'), hint: t('token.userHint') },
        names('queues', t('token.queues')), names('types', t('token.types')),
        names('categories', t('token.categories')),
        { name: 'count', label: t('token.rate'), kind: 'number', hint: t('token.rateHint') },
        { name: 'burst', label: t('token.burst'), kind: 'number', show: (values) => values.count !== '' },
        { name: 'max_tasks', label: t('token.tasks'), kind: 'number', hint: t('token.tasksHint') },
    ];
}

// What the form holds, as the API wants it.
function shape({ role, scopes, life, expires_at: at, count, burst, ...rest }) {
    return { ...rest, ...(role === 'own' ? { scopes } : { role }), expires_at: life === 'at' ? at
        : life === 'never' ? null : new Date(Date.now() + Number(life) * DAY).toISOString(),
    rate: count === null ? null : { count, per_ms: 1000, ...(burst === null || burst === undefined ? {} : { burst }) } };
}

// The token itself, once.
function Secret({ made, onClose }) {
    const [copied, setCopied] = useState(false);
    const [asking, setAsking] = useState(false);
    const question = useRef(null);
    useLayoutEffect(() => {
        if (asking)
            question.current.querySelector('button').focus();
    }, [asking]);
    const leave = () => (copied || asking ? onClose() : setAsking(true));
    const works = made.scopes.includes('work') || made.scopes.includes('admin');
    const queues = made.queues.filter((name) => !name.endsWith('*'));
    const use = works ? `worker --server ${location.origin}${queues.length ? ` --queues ${quoted(queues.join(','))}` : ''
        } --config perdura.yaml` : `whoami --server ${location.origin}`;
    return html`<${Dialog} title=${t('token.madeTitle', { name: made.name })} onClose=${leave}>
        <p>${t('token.once')}</p>${made.isOwn && html`<p>${t('token.nowYours')}</p>`}
        <p><strong>${t('login.token')}</strong></p><${Command} text=${made.token} isSecret
            label=${t('token.copy')} onCopied=${() => setCopied(true)}/>
        <p><strong>${t(works ? 'token.useWorker' : 'token.use')}</strong></p><p class="faint">${t('token.useText')}</p>
        <${Command} text=${`read -rs PERDURA_TOKEN && export PERDURA_TOKEN && perdura ${use}`}/>
        <footer ref=${question} class=${asking ? 'unsaved' : ''}>${asking && html`<p role="alert">${t('token.notCopied')}</p>
        <${Button} kind="primary" onClick=${() => setAsking(false)}>${t('token.stay')}<//>`}
        <${Button} kind=${asking ? 'danger' : 'primary'} onClick=${leave}>${t(asking ? 'token.leave'
        : 'token.kept')}<//></footer><//>`;
}

function Rotate({ token, onClose, done }) {
    const [overlap, setOverlap] = useState(String(OVERLAPS[2]));
    const rotate = async () => done(await post(`/v1/tokens/${token.id}:rotate`, { overlap_ms: Number(overlap) }));
    return html`<${FormDialog} title=${t('token.rotateTitle', { name: token.name })} onClose=${onClose} onSubmit=${rotate}
        submit=${t('token.rotate')} names=${['overlap_ms']} dirty=${false}>${(error) => html`<p>${t('token.rotateText')}</p>
        <${Field} label=${t('token.overlap')} hint=${t('token.overlapHint')} error=${error?.field && error.message}>
        ${(field) => html`<${Select} ...${field} value=${overlap} onChange=${setOverlap} options=${OVERLAPS.map((ms) => [
        String(ms), ms ? duration(ms) : t('token.overlapNone')])}/>`}<//>`}<//>`;
}

function Limits({ token }) {
    const lines = [...(token.namespace === 'default' ? [] : [[t('namespace.one'), token.namespace === '*'
        ? t('namespace.all') : token.namespace]]), ...(token.user_id === null ? [] : [[t('token.user'), token.user_id]]),
    ...limitsOf(token), ...(token.rate ? [[t('token.rate'), t('queue.rateText', { count: number(token.rate.count),
        per: duration(token.rate.per_ms) })]] : []), ...(token.max_tasks ? [[t('token.tasks'), t('token.tasksOf', {
        open: number(token.open_tasks), max: number(token.max_tasks) })]] : [])];
    return lines.length ? lines.map(([label, value]) => html`<div key=${label}><small class="inline">${label}:</small> ${value}</div>`)
        : '–';
}

function Row({ token, isOwn, rotate, revoke }) {
    const ended = token.status !== 'live';
    const named = may('GET /v1/audit') ? html`<a href=${link('audit', null, { principal: `token:${token.name}` })}
        title=${t('token.trail')}>${token.name}</a>` : html`<strong>${token.name}</strong>`;
    const button = (verb, op, onClick, kind = '') => html`<${Button} op=${op} kind=${`small ${kind}`}
        aria-label=${`${t(`token.${verb}`)}: ${token.name}`} onClick=${onClick}>${t(`token.${verb}`)}<//>`;
    return html`<tr class=${ended ? 'off' : ''}><td class="main">${named}${isOwn && html`<span class="tag good">${t(
        'token.yours')}</span>`}${ended && html`<span class="tag bad">${t(`token.status.${token.status}`)}</span>`}
        <small>${token.id} · ${t('token.by', { name: token.created_by })} <${When} time=${token.created_at}/></small></td>
        <td class="words" data-label=${t('token.rights')}><${Scopes} scopes=${token.scopes}/></td>
        <td class="words" data-label=${t('token.limits')}><${Limits} token=${token}/></td>
        <td data-label=${t('token.expires')}>${token.revoked_at ? html`${t('token.status.revoked')} <${Ago}
            time=${token.revoked_at}/>` : html`<${Ago} time=${token.expires_at} none=${t('token.never')}/>`}
        ${token.former_until && Date.parse(token.former_until) > Date.now() && html`<small>${t('token.former')} <${Ago}
            time=${token.former_until}/></small>`}</td>
        <td data-label=${t('token.used')}><${Ago} time=${token.last_used_at} none=${t('token.unused')}/></td>
        <td class="row-actions">${token.status !== 'revoked' && html`${!ended && button('rotate', 'POST /v1/tokens/{id}:rotate', rotate)}
        ${button('revoke', 'DELETE /v1/tokens/{id}', revoke, 'danger')}`}</td></tr>`;
}

export default function Tokens({ query }) {
    const { who } = useStore(session);
    const list = useLoad(() => getAll('/v1/tokens'), [], 5000);
    const [dialog, setDialog] = useState(null); // { form }, { rotate: token }, { revoke: token } or { made: token }
    const fields = useMemo(tokenFields, [who, dialog?.form]);
    const close = () => setDialog(null);
    const isOwn = (token) => token.id === who.token_id;
    // This tab continues with what was made where it could not without: its own token has another secret now,
    // or an open server is open no more.
    async function show(made) {
        const mine = Boolean(made.notice) || isOwn(made);
        if (mine) {
            keepToken(made.token, isOwn(made) && isKeptHere());
            await askWho().catch(() => {});
        }
        setDialog({ made: { ...made, isOwn: mine } });
        list.reload();
    }
    const all = query.show === 'all';
    const shown = (list.data ?? []).filter((token) => all || token.status === 'live');
    const ended = (list.data ?? []).length - (list.data ?? []).filter((token) => token.status === 'live').length;
    return html`<${Page} title=${t('nav.tokens')} lead=${t('token.lead')} actions=${html`<${Button} op="POST /v1/tokens"
        kind="primary" onClick=${() => setDialog({ form: true })}>${t('token.new')}<//>`}>
        <${Problem} error=${list.error} retry=${list.reload}/>${!list.data && !list.error && html`<${Loading}/>`}
        ${who.kind === 'local' && html`<p class="remark">${t('token.openServer')}</p>`}
        ${ended > 0 && html`<label class="toggle"><input type="checkbox" checked=${all} onChange=${() => replaceQuery({
        show: all ? '' : 'all' })}/> ${tn('token.showEnded', ended)}</label>`}
        ${list.data && shown.length === 0 && html`<${Empty} title=${t('token.empty')} text=${t('token.emptyText')}
            command="perdura token create --name media-1 --role worker"/>`}
        ${shown.length > 0 && html`<div class="card flush"><div class="table-place"><table class="stack"><thead><tr>
            <th>${t('token.name')}</th><th>${t('token.rights')}</th><th>${t('token.limits')}</th><th>${t('token.expires')}</th>
            <th>${t('token.used')}</th><th><span class="visually-hidden">${t('actions')}</span></th></tr></thead>
            <tbody>${shown.map((token) => html`<${Row} key=${token.id} token=${token} isOwn=${isOwn(token)}
            rotate=${() => setDialog({ rotate: token })} revoke=${() => setDialog({ revoke: token })}/>`)}</tbody></table></div></div>`}
        ${dialog?.form && html`<${Form} title=${t('token.new')} fields=${fields} path="/v1/tokens" shape=${shape} quiet
            submit=${t('token.make')} aliases=${{ rate: 'count', expires_at: 'life' }} saveExtra=${show} onClose=${() => setDialog((now) => (now?.form ? null : now))}
            done=${() => {}}/>`}
        ${dialog?.rotate && html`<${Rotate} token=${dialog.rotate} onClose=${close} done=${show}/>`}
        ${dialog?.revoke && html`<${Confirm} title=${t('token.revokeTitle', { name: dialog.revoke.name })} kind="danger"
            text=${t(isOwn(dialog.revoke) ? 'token.revokeOwn' : 'token.revokeText')} action=${t('token.revoke')}
            onClose=${close} onConfirm=${async () => {
        await attempt(() => remove(`/v1/tokens/${dialog.revoke.id}`), t('token.revoked', { name: dialog.revoke.name }));
        await list.reload();
    }}/>`}
        ${dialog?.made && html`<${Secret} made=${dialog.made} onClose=${close}/>`}<//>`;
}
