// The small things every page is made of: buttons, dialogs, tabs, fields, messages, empty states.
import { html, useEffect, useRef, useState } from '../html.js';
import { may } from '../rights.js';
import { hasMoved } from '../route.js';
import { notify } from '../store.js';
import { dayAndTime, fullTime, relative, t } from '../text.js';

// op: the operation of the API that it asks for, as in openapi.json; who may not do that gets no button.
export function Button({ kind = '', busy = false, onClick, children, op, ...rest }) {
    const [working, setWorking] = useState(false);
    const alive = useRef(true);
    useEffect(() => () => { alive.current = false; }, []);
    async function click(event) {
        if (working || !onClick)
            return;
        setWorking(true);
        try {
            await onClick(event);
        } finally {
            if (alive.current)
                setWorking(false);
        }
    }
    if (op && !may(op))
        return null;
    return html`<button type="button" class=${`button ${kind}`} onClick=${click} data-op=${op}
        aria-busy=${working || busy ? 'true' : null} aria-disabled=${working ? 'true' : null}
        ...${rest}>${children}</button>`;
}

export function Page({ title, lead, actions, children }) {
    const head = useRef(null);
    useEffect(() => {
        document.title = `${title} · Perdura`;
        if (hasMoved() && (document.activeElement === document.body || !document.activeElement))
            head.current?.focus({ preventScroll: true });
    }, [title]);
    return html`<div class="page">
        <header class="page-head">
            <div><h1 tabindex="-1" ref=${head}>${title}</h1>
            ${lead && html`<p class="lead">${lead}</p>`}</div>
            ${actions && html`<div class="actions">${actions}</div>`}
        </header>
        ${children}
    </div>`;
}

export function Card({ title, extra, children, wide = false, id }) {
    return html`<section class=${`card ${wide ? 'wide' : ''}`} aria-labelledby=${title ? id : null}>
        ${title && html`<header class="card-head"><h2 id=${id}>${title}</h2>${extra}</header>`}
        ${children}
    </section>`;
}

export function Problem({ error, retry }) {
    if (!error)
        return null;
    return html`<div class="problem" role="alert" tabindex="-1"><strong>${t('error.title')}</strong>
        <span>${error.message}</span>
        ${retry && html`<${Button} kind="small" onClick=${retry}>${t('action.again')}<//>`}</div>`;
}

export function Loading() {
    return html`<div class="loading" role="status"><span class="visually-hidden">${t('loading')}</span>
        <i></i><i></i><i></i></div>`;
}

// Nothing here: what to do next, with the command that does it, for those who may (op).
export function Empty({ title, text, command, children, op }) {
    return html`<div class="empty"><svg viewBox="0 0 48 48" aria-hidden="true"><rect x="6" y="12"
        width="36" height="26" rx="5"/><path d="M6 22h11l3 5h8l3-5h11"/></svg>
        <h3>${title}</h3>${text && html`<p>${text}</p>`}
        ${command && (!op || may(op)) && html`<${Command} text=${command}/>`}${children}</div>`;
}

export function Command({ text, ...copy }) {
    return html`<div class="command"><code>${text}</code><${Copy} text=${text} ...${copy}/></div>`;
}

export function Copy({ text, label = t('action.copy'), onCopied, isSecret = false }) {
    async function copy() {
        try {
            await navigator.clipboard.writeText(text);
            notify(t('copied'));
            onCopied?.();
        } catch {
            notify(t('copyFailed'), 'bad');
        }
    }
    return html`<button type="button" class="copy" onClick=${copy} title=${label}
        aria-label=${isSecret ? label : `${label}: ${text.slice(0, 60)}`}><svg viewBox="0 0 16 16" aria-hidden="true"><rect
        x="5.5" y="5.5" width="8" height="8" rx="2"/><path d="M10.5 3.5v-1h-8v8h1"/></svg></button>`;
}

// Arrow keys move between tabs, as everywhere.
export function Tabs({ tabs, current, onChoose, label }) {
    const list = useRef(null);
    useEffect(() => list.current.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest',
        inline: 'nearest' }), [current]);
    function move(event) {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step)
            return;
        event.preventDefault();
        const at = tabs.findIndex((tab) => tab.id === current);
        const next = tabs[(at + step + tabs.length) % tabs.length];
        onChoose(next.id);
        requestAnimationFrame(() => list.current?.querySelector('[aria-selected=true]')?.focus());
    }
    return html`<div class="tabs" role="tablist" aria-label=${label} ref=${list} onKeyDown=${move}>
        ${tabs.map((tab) => html`<button type="button" role="tab" key=${tab.id} id=${`tab-${tab.id}`}
            aria-selected=${tab.id === current ? 'true' : 'false'} aria-controls=${`panel-${tab.id}`}
            tabindex=${tab.id === current ? 0 : -1} onClick=${() => onChoose(tab.id)}>${tab.text}
            ${tab.count ? html` <span class="count">${tab.count}</span>` : null}</button>`)}</div>`;
}

export function TabPanel({ id, children }) {
    return html`<div role="tabpanel" id=${`panel-${id}`} aria-labelledby=${`tab-${id}`}
        class="tab-panel">${children}</div>`;
}

let fieldId = 0;
export function Field({ label, hint, error, children }) {
    const id = useRef(`field-${++fieldId}`).current;
    const about = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(' ') || null;
    return html`<div class=${`field ${error ? 'wrong' : ''}`}><label for=${id}>${label}</label>
        ${children({ id, 'aria-describedby': about, 'aria-invalid': error ? 'true' : null })}
        ${hint && html`<small id=${`${id}-hint`}>${hint}</small>`}
        ${error && html`<small class="bad" id=${`${id}-error`} role="alert">${error}</small>`}</div>`;
}

export function Select({ options, value, onChange, ...rest }) {
    return html`<select value=${value} onChange=${(event) => onChange(event.target.value)} ...${rest}>
        ${options.map(([key, text]) => html`<option key=${key} value=${key}
            selected=${key === value}>${text}</option>`)}</select>`;
}

// The time that is shown moves on by itself; in full on hover and for screen readers.
export function Ago({ time, none = '–' }) {
    const [, tick] = useState(0);
    useEffect(() => {
        const timer = setInterval(() => tick((n) => n + 1), 1000);
        return () => clearInterval(timer);
    }, []);
    return time ? html`<time datetime=${time} title=${fullTime(time)}>${relative(time)}</time>` : none;
}

export function When({ time, none = '–' }) {
    return time ? html`<time datetime=${time} title=${fullTime(time)}>${dayAndTime(time)}</time>` : none;
}

export function Facts({ rows }) {
    return html`<dl class="facts">${rows.filter((row) => row && row[1] !== null && row[1] !== undefined
        && row[1] !== '' && row[1] !== false).map(([term, value]) => html`<div key=${term}><dt>${term}</dt>
        <dd>${value}</dd></div>`)}</dl>`;
}
