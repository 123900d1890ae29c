// Who is signed in: the page where one signs in, the button at the top right, and what it opens: scopes,
// namespace, limits, expiry, and the way out.
import { html, useEffect, useState } from '../html.js';
import { askWho, getAll, hasToken, isKeptHere, keepNamespace, namespace, signIn, signOut } from '../api.js';
import { firstPage, mayOpen, roleOf } from '../rights.js';
import { go, link } from '../route.js';
import { namespaceChanges, session, useStore } from '../store.js';
import { number, t } from '../text.js';
import { Ago, Button, Command, Empty, Facts, Page } from './controls.js';
import { Dialog } from './dialog.js';

const SOON_MS = 24 * 3600e3;
const LOGO = html`<svg class="logo" viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32"
    rx="9"/><path d="M11 25V8h6.5a5 5 0 0 1 0 10H11"/></svg>`;

// In the reader's language where the server says one of a few things.
const REASONS = [[/^this token has expired/, 'login.expired'], [/^this token was revoked/, 'login.revoked'],
    [/^this token was replaced/, 'login.replaced'], [/^the token is (wrong|not valid)/, 'login.wrong'],
    [/^this is not a whole token/, 'login.notWhole']];
function inWords({ reason, wasIn }) {
    const [, key] = REASONS.find(([pattern]) => pattern.test(reason)) ?? [];
    return key ? t(wasIn && key === 'login.wrong' ? 'login.replaced' : key) : reason;
}

export function Login() {
    const now = useStore(session);
    const [error, setError] = useState('');
    const [busy, setBusy] = useState(false);
    async function submit(event) {
        event.preventDefault();
        const { token, stays } = event.target.elements;
        if (busy || !token.value.trim())
            return;
        setBusy(true);
        setError('');
        try {
            await signIn(token.value.trim(), stays.checked);
        } catch (failure) { // 401 and 403 are in the session
            setError([401, 403].includes(failure.status) ? '' : failure.message);
            setBusy(false);
            document.getElementById('token')?.select();
        }
    }
    useEffect(() => {
        document.title = `${t('login.title')} · Perdura`;
        document.getElementById('token')?.focus();
    }, []);
    return html`<main class="login"><form onSubmit=${submit} class="card">${LOGO}
        <h1>${t('login.title')}</h1><p>${t('login.text')}</p>
        <label for="token">${t('login.token')}</label>
        <input id="token" name="token" type="password" autocomplete="current-password" required
            spellcheck=${false} aria-describedby="token-error" aria-invalid=${now.reason ? 'true' : null}/>
        <p id="token-error" role="alert" class="bad">${error || inWords(now)}</p>
        <label class="toggle"><input type="checkbox" name="stays" aria-describedby="stays-hint"/> ${t('login.stays')}</label>
        <small id="stays-hint">${t('login.staysHint')}</small>
        <button type="submit" class="button primary" aria-busy=${busy ? 'true' : null}>${t('login.enter')}</button>
        <details><summary>${t('login.how')}</summary><p>${t('login.howText')}</p>
        <${Command} text="perdura token create --name NAME --role viewer" isSecret/>
        <p>${t('login.howProxy')} <button type="button" class="link" onClick=${() => location.reload()}>${t(
        'login.reload')}</button></p></details></form></main>`;
}

const labelOf = (who) => (who.kind === 'local' ? t('who.local') : who.kind === 'root' ? t('who.root') : who.name);
const expiresSoon = (who) => who.expires_at && Date.parse(who.expires_at) - Date.now() < SOON_MS;

// The scopes with what they allow.
export function Scopes({ scopes }) {
    const role = roleOf(scopes);
    return html`<span>${role && html`<strong>${t(`role.${role}`)}</strong> `}${scopes.map((scope) => html`<span
        class="tag" key=${scope} title=${t(`scope.${scope}`)}>${scope}</span>`)}</span>`;
}

export const limitsOf = (who) => [[t('nav.queues'), who.queues], [t('worker.types'), who.types],
    [t('worker.categories'), who.categories]].filter(([, names]) => names.length)
    .map(([label, names]) => [label, names.join(', ')]);

function About({ who }) {
    return html`<div class="about"><${Facts} rows=${[[t('who.name'), labelOf(who)], [t('who.kind'), t(`who.kind.${who.kind}`)],
        [t('namespace.one'), who.namespace === '*' ? t('namespace.all') : who.namespace],
        [t('token.user'), who.user_id], ...limitsOf(who),
        [t('token.tasks'), who.max_tasks && number(who.max_tasks)],
        [t('token.expires'), who.expires_at && html`<${Ago} time=${who.expires_at}/>`]]}/>
        <p><strong>${t('who.may')}</strong></p>
        ${who.scopes.includes('admin') ? html`<p>${t('scope.admin')}</p>` : html`<ul class="scopes">${who.scopes
        .map((scope) => html`<li key=${scope}><code>${scope}</code> ${t(`scope.${scope}`)}</li>`)}</ul>`}</div>`;
}

// Only where there is a choice. Another namespace is another world: the page begins again.
export function Namespaces() {
    const [names, setNames] = useState([]);
    const changes = useStore(namespaceChanges);
    function choose(name) {
        keepNamespace(name === 'default' ? '' : name);
        location.hash = '#/';
        location.reload();
    }
    useEffect(() => {
        getAll('/v1/namespaces').then((items) => {
            const found = items.map((one) => one.name).sort();
            if (namespace() && !found.includes(namespace()))
                choose(''); // it was deleted
            setNames(found);
        }, () => setNames([]));
    }, [changes]);
    if (names.length < 2)
        return null;
    return html`<select class="namespaces" aria-label=${t('namespace')} title=${t('namespace')}
        value=${namespace() || 'default'} onChange=${(event) => choose(event.target.value)}>
        ${names.map((name) => html`<option key=${name} value=${name}
            selected=${name === (namespace() || 'default')}>${name}</option>`)}</select>`;
}

// Pages that a phone's navigation has no room for.
export const BESIDE = ['tokens', 'namespaces', 'audit', 'keys'];

function Details({ who, onClose }) {
    const pages = BESIDE.filter((page) => mayOpen(page));
    return html`<${Dialog} title=${t('who.title')} onClose=${onClose}><${About} who=${who}/>
        ${who.kind === 'local' && html`<p>${t('who.localText')}</p>`}
        ${hasToken() && html`<p class="faint">${t(isKeptHere() ? 'who.keptHere' : 'who.keptTab')}</p>`}
        <div class="narrow-only"><${Namespaces}/></div>
        ${pages.length > 0 && html`<nav class="narrow-only actions" aria-label=${t('who.pages')}>${pages.map((page) => html`<a
            class="button" key=${page} href=${link(page)} onClick=${onClose}>${t(`nav.${page}`)}</a>`)}</nav>`}
        <footer><${Button} onClick=${onClose}>${t('action.close')}<//>
        ${hasToken() && html`<${Button} kind="primary" onClick=${signOut}>${t('login.leave')}<//>`}</footer><//>`;
}

export function Who() {
    const { who } = useStore(session);
    const [open, setOpen] = useState(false);
    return html`<button type="button" class="who" onClick=${() => setOpen(true)} aria-label=${t('who.open',
        { name: labelOf(who) })}><svg viewBox="0 0 20 20" aria-hidden="true"><path
        d="M7 7a3 3 0 1 0 6 0 3 3 0 0 0-6 0M4 17c0-4 12-4 12 0"/></svg><span>${labelOf(who)}</span>
        ${expiresSoon(who) && html`<span class="tag warn">${t('who.soon')} <${Ago} time=${who.expires_at}/></span>`}</button>
        ${open && html`<${Details} who=${who} onClose=${() => setOpen(false)}/>`}`;
}

// Instead of a page that the credential does not show; at the start, the first page that it does.
export function Forbidden({ scope, isStart }) {
    const { who } = useStore(session);
    const first = firstPage();
    useEffect(() => {
        if (isStart && first)
            location.replace(link(first));
    }, [isStart, first]);
    if (isStart && first)
        return null;
    return html`<${Page} title=${t(isStart ? 'who.title' : 'access.title')}>
        ${!isStart && html`<${Empty} title=${t('access.needs', { scope })} text=${t('access.ask')}>${first !== undefined
        && html`<${Button} onClick=${() => go(first)}>${t('access.first')}<//>`}<//>`}
        <div class="card about">${isStart && html`<p>${t('access.nothing')}</p>`}<${About} who=${who}/></div><//>`;
}

// Asks until it is known who one is; a server that cannot be reached is asked again.
export function useSession() {
    const now = useStore(session);
    const [tries, setTries] = useState(0);
    useEffect(() => {
        if (now.who || now.isOut)
            return undefined;
        const timer = setTimeout(() => askWho().catch(() => setTries(tries + 1)), tries ? 2000 : 0);
        return () => clearTimeout(timer);
    }, [now, tries]);
    return now;
}
