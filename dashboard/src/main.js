// The frame around every page: navigation, search, who is signed in, lost connection, keys, theme, language.
// Pages are loaded when they are first needed, and all of them once there is nothing else to do.
import { html, render, useEffect, useState } from './html.js';
import { askWho } from './api.js';
import { Button, Empty, Loading, Page } from './parts/controls.js';
import { Dialog } from './parts/dialog.js';
import { pressRow } from './parts/rows.js';
import { BESIDE, Forbidden, Login, Namespaces, useSession, Who } from './parts/who.js';
import { may, mayOpen, NEEDS, opens, scopeOfPage } from './rights.js';
import { parseSearch } from './search.js';
import { go, hasMoved, link, route } from './route.js';
import { chooseTheme, connection, leaveNotices, notices, theme, useStore } from './store.js';
import { chooseLanguage, clock, language, languages, loadLanguage, t } from './text.js';

const SECOND_KEY_MS = 2000; // between "g" and the letter
const WHO_MS = 300; // so long the first paint waits for who one is
const AHEAD_MS = 2000; // the other pages are fetched once this one has what it needs

const pages = {
    '': { load: () => import('./pages/overview.js'), text: 'nav.overview', key: 'o',
        icon: 'M3 11V3h6v8zm0 6v-3h6v3zm8 0V9h6v8zm0-11V3h6v3z' },
    tasks: { load: () => import('./pages/tasks.js'), one: () => import('./pages/task.js'),
        text: 'nav.tasks', key: 't', icon: 'M7 5h10M7 10h10M7 15h10M3 5h.5M3 10h.5M3 15h.5' },
    workflows: { load: () => import('./pages/workflows.js'), one: () => import('./pages/workflow.js'),
        text: 'workflows.title', key: 'f', icon: 'M4 3h5v4H4zm7 10h5v4h-5zM6.5 7v8H11' },
    queues: { load: () => import('./pages/queues.js'), text: 'nav.queues', key: 'q',
        icon: 'M3 4h14v3H3zm0 5h14v3H3zm0 5h9v3H3z' },
    workers: { load: () => import('./pages/workers.js'), text: 'nav.workers', key: 'w',
        icon: 'M6 6h8v8H6zM8 2v4m4-4v4m-4 8v4m4-4v4M2 8h4m-4 4h4m8-4h4m-4 4h4' },
    services: { load: () => import('./pages/services.js'), text: 'nav.services', key: 'v',
        icon: 'M3 12h14v4H3zm2-8h10v4H5zm5 4v4M6 14h.5' },
    jobs: { load: () => import('./pages/jobs.js'), text: 'nav.jobs', key: 'j',
        icon: 'M3 7h14v9H3zm4 0V4h6v3M3 11h14' },
    schedules: { load: () => import('./pages/schedules.js'), text: 'nav.schedules', key: 's',
        icon: 'M3 5h14v12H3zm0 4h14M7 3v4m6-4v4' },
    recovery: { load: () => import('./pages/recovery.js'), text: 'nav.recovery', key: 'r',
        icon: 'M4 10a6 6 0 1 1 2 4.5M4 10V6m0 4h4' },
    tokens: { load: () => import('./pages/tokens.js'), text: 'nav.tokens', key: 'k',
        icon: 'M3 10a4 4 0 1 0 8 0 4 4 0 0 0-8 0m8 0h6v3m-3-3v2' },
    namespaces: { load: () => import('./pages/namespaces.js'), text: 'nav.namespaces', key: 'n',
        icon: 'M3 3h6v6H3zm8 0h6v6h-6zM3 11h6v6H3zm8 0h6v6h-6z' },
    audit: { load: () => import('./pages/audit.js'), text: 'nav.audit', key: 'a',
        icon: 'M5 3h7l3 3v11H5zm3 6h4m-4 3h4M12 3v3h3' },
    keys: { load: () => import('./pages/keys.js'), text: 'nav.keys', key: 'e',
        icon: 'M5 9h10v8H5zm2 0V6a3 3 0 0 1 6 0v3m-3 3v2' },
};
const shown = () => Object.entries(pages).filter(([id]) => mayOpen(id));
const narrowHidden = new Set(['workflows', 'services', ...BESIDE]); // a phone has no room for them

function Navigation({ page }) {
    return html`<nav class="side" aria-label=${t('nav.label')}>
        <a class="brand" href="#/"><svg viewBox="0 0 32 32" aria-hidden="true"><rect width="32"
            height="32" rx="9"/><path d="M11 25V8h6.5a5 5 0 0 1 0 10H11"/></svg><span>Perdura</span></a>
        <ul>${shown().map(([id, one]) => html`<li
            key=${id} class=${narrowHidden.has(id) ? 'narrow-hide' : ''}><a href=${link(id)} aria-current=${page === id ? 'page' : null}
            title=${`g ${one.key}`}><svg viewBox="0 0 20 20" aria-hidden="true"><path
            d=${one.icon}/></svg><span>${t(one.text)}</span></a></li>`)}</ul>
        <${Preferences}/></nav>`;
}

function Preferences() {
    const chosen = useStore(theme);
    const dark = chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
    return html`<div class="preferences"><${Namespaces}/>
        <button type="button" class="icon-button" onClick=${() => chooseTheme(dark ? 'light' : 'dark')}
            aria-label=${t(dark ? 'theme.light' : 'theme.dark')}
            title=${t(dark ? 'theme.light' : 'theme.dark')}><svg viewBox="0 0 20 20"
            aria-hidden="true"><path d=${dark ? 'M10 3v2m0 10v2m7-7h-2M5 10H3m11.9-4.9-1.4 1.4m-7 7-1.4 1.4m0-9.8 1.4 1.4m7 7 1.4 1.4M7 10a3 3 0 1 0 6 0 3 3 0 0 0-6 0'
            : 'M16 12a7 7 0 0 1-8-8 6.5 6.5 0 1 0 8 8'}/></svg></button>
        <select aria-label=${t('language')} value=${language.get()}
            onChange=${(event) => chooseLanguage(event.target.value)}>
            ${Object.entries(languages).map(([code, text]) => html`<option key=${code} value=${code}
                lang=${code} selected=${code === language.get()}>${text}</option>`)}</select>
        <button type="button" class="icon-button" onClick=${() => showHelp(true)}
            aria-label=${t('help.title')} title="?">?</button></div>`;
}

function Search() {
    function submit(event) {
        event.preventDefault();
        const { id, filters } = parseSearch(event.target.elements.search.value);
        if (id)
            go('tasks', id);
        else
            go('tasks', null, filters);
        document.getElementById('content').focus(); // so that the next keys are for what was found
    }
    return html`<form class="search" role="search" onSubmit=${submit}><label class="visually-hidden"
        for="search">${t('search.label')}</label><svg viewBox="0 0 20 20" aria-hidden="true"><path
        d="M4 9a5 5 0 1 0 10 0A5 5 0 0 0 4 9m9 4 4 4"/></svg><input id="search" name="search"
        type="search" autocomplete="off" spellcheck=${false} placeholder=${t(mayOpen('tasks') ? 'search.hint' : 'search.id')}/>
        <kbd aria-hidden="true">/</kbd></form>`;
}

function Lost() {
    const now = useStore(connection);
    return html`<div role="status" aria-live="assertive" class="lost-place">${now.lost && html`<div
        class="lost"><i></i>${t('lost', { since: clock(now.since) })}</div>`}</div>`;
}

function Notices() {
    const list = useStore(notices);
    return html`<div class="notices" role="status" aria-live="polite">${list.map((one) => html`<div
        key=${one.id} class=${`notice ${one.kind}`}>${one.text}<button type="button"
        aria-label=${t('action.close')} onClick=${() => notices.set(notices.get()
        .filter((other) => other !== one))}>×</button></div>`)}</div>`;
}

let showHelp = () => {};

function Help({ onClose }) {
    const keys = [may(NEEDS.tasks.one) && ['/', 'help.search'], ['?', 'help.this'],
        ...shown().map(([, one]) => [`g ${one.key}`, one.text]),
        ['j k', 'help.rows'], may('POST /v1/tasks/{id}:cancel') && ['x', 'help.select'],
        ['Enter', 'help.open']].filter(Boolean);
    return html`<${Dialog} title=${t('help.title')} onClose=${onClose}><dl class="keys">
        ${keys.map(([key, text]) => html`<div key=${key}><dt>${key.split(' ').map((one) => html`<kbd
            key=${one}>${one}</kbd> `)}</dt><dd>${t(text)}</dd></div>`)}</dl>
        <p class="faint">${t('help.api')} <a href="/openapi.json">/openapi.json</a> ·
        <a href="/assets/licenses.txt">${t('help.licenses')}</a></p><//>`;
}

// "/" searches, "?" helps, "g" and a letter goes, the rest is for rows; never while the user types.
function useKeys(setHelp) {
    useEffect(() => {
        let before = { key: '', at: 0 };
        function press(event) {
            if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented
                || event.target.closest('input:not([type=checkbox]), textarea, select, dialog, svg'))
                return;
            const target = before.key === 'g' && event.timeStamp - before.at < SECOND_KEY_MS
                && shown().find(([, one]) => one.key === event.key);
            before = { key: event.key, at: event.timeStamp };
            if (target)
                go(target[0]);
            else if (event.key === '/' && document.getElementById('search'))
                document.getElementById('search').focus();
            else if (event.key === '?')
                setHelp(true);
            else if (!pressRow(event))
                return;
            event.preventDefault();
        }
        addEventListener('keydown', press);
        return () => removeEventListener('keydown', press);
    }, []);
}

function useModule(now) {
    const [module, setModule] = useState({ load: null, show: null, error: null });
    const page = Object.hasOwn(pages, now.page) ? pages[now.page] : null;
    const isOpen = opens(location.hash || '#/');
    const lacks = isOpen ? '' : scopeOfPage(now.page, now.id);
    const load = !page || !now.known || !isOpen ? null : now.id ? page.one : page.load;
    useEffect(() => {
        let mine = true;
        load?.().then((made) => mine && setModule({ load, show: made.default, error: null }),
            (error) => mine && setModule({ load, show: null, error }));
        return () => { mine = false; };
    }, [load]);
    return { ...(module.load === load ? module : {}), found: Boolean(load), lacks };
}

function Content({ now }) {
    const { show: Show, error, found, lacks } = useModule(now);
    if (lacks)
        return html`<${Forbidden} scope=${lacks} isStart=${now.page === ''}/>`;
    if (!found)
        return html`<${Page} title=${t('nowhere.title')}><${Empty} title=${t('nowhere.title')}
            text=${t('nowhere.text')}><a class="button" href="#/">${t('nav.overview')}</a><//><//>`;
    if (error)
        return html`<${Page} title=${t('error.title')}><${Empty} title=${t('error.page')}>
            <${Button} onClick=${() => location.reload()}>${t('action.again')}<//><//><//>`;
    return Show ? html`<${Show} key=${now.id ?? ''} id=${now.id} query=${now.query}/>`
        : html`<${Loading}/>`;
}

function App() {
    const now = useStore(route);
    const { who, isOut } = useSession();
    const [help, setHelp] = useState(false);
    useStore(language);
    showHelp = setHelp;
    useKeys(setHelp);
    useEffect(() => {
        scrollTo(0, 0);
        leaveNotices();
        if (hasMoved())
            document.querySelector('main h1')?.focus({ preventScroll: true });
    }, [now.page, now.id]);
    useEffect(() => {
        const ahead = (load) => load?.().catch(() => {}); // the page itself shows the error
        const all = () => Object.values(pages).forEach((one) => { ahead(one.load); ahead(one.one); });
        const timer = setTimeout(() => (globalThis.requestIdleCallback ?? setTimeout)(all), AHEAD_MS);
        return () => clearTimeout(timer);
    }, []);
    if (isOut)
        return html`<${Login}/>`;
    if (!who)
        return html`<${Lost}/><${Loading}/>`;
    function skip(event) { // the address is the page's: the link moves the focus itself
        event.preventDefault();
        document.getElementById('content').focus();
    }
    return html`<a class="skip" href="#content" onClick=${skip}>${t('skip')}</a>
        <div class="frame"><${Navigation} page=${now.page}/>
        <div class="body"><div class="top">${may(NEEDS.tasks.one) ? html`<${Search}/>`
        : html`<span></span>`}<${Who}/></div><${Lost}/>
        <main id="content" tabindex="-1"><${Content} now=${now}/></main></div></div>
        <${Notices}/>${help && html`<${Help} onClose=${() => setHelp(false)}/>`}`;
}

const who = askWho().catch(() => {}); // what went wrong is met again in the page
const patience = new Promise((resolve) => setTimeout(resolve, WHO_MS));
await Promise.all([loadLanguage(), Promise.race([who, patience])]);
render(html`<${App}/>`, document.getElementById('app'));
