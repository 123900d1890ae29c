// Shows a value: as a tree that opens and closes, as text, or as bytes. Strings are only ever text:
// nothing in them is taken for markup. Long things are cut and opened on request.
import { ExactNumber } from '../api.js';
import { html, useMemo, useState } from '../html.js';
import { number, t } from '../text.js';
import { Copy } from './controls.js';
import { isSealed, Sealed } from './sealed.js';

const CHILDREN_SHOWN = 100;
const TEXT_SHOWN = 20000;
const BYTES_SHOWN = 8192;

function Leaf({ value }) {
    if (value === null)
        return html`<span class="json-null">null</span>`;
    if (isSealed(value))
        return html`<${Sealed} value=${value}/>`;
    if (value instanceof ExactNumber)
        return html`<span class="json-number">${value.source}</span>`;
    if (typeof value === 'string') {
        const cut = value.length > 500;
        return html`<span class="json-string">"${cut ? value.slice(0, 500) : value}${cut ? '…' : ''}"</span>
            ${cut && html` <small>${t('viewer.characters', { n: number(value.length) })}</small>`}`;
    }
    return html`<span class=${`json-${typeof value}`}>${String(value)}</span>`;
}

const isBranch = (value) => value !== null && typeof value === 'object'
    && !(value instanceof ExactNumber);

function Node({ name, value, depth }) {
    const [shown, setShown] = useState(CHILDREN_SHOWN);
    const [open, setOpen] = useState(depth < 2);
    const label = name !== null && html`<span class="json-key">${name}</span>: `;
    if (!isBranch(value) || isSealed(value))
        return html`<div class="json-leaf">${label}<${Leaf} value=${value}/></div>`;
    const entries = Array.isArray(value) ? value.map((one, at) => [at, one]) : Object.entries(value);
    const [left, right] = Array.isArray(value) ? '[]' : '{}';
    if (entries.length === 0)
        return html`<div class="json-leaf">${label}${left}${right}</div>`;
    return html`<details class="json-branch" open=${open}
        onToggle=${(event) => setOpen(event.currentTarget.open)}>
        <summary>${label}${left}<small> ${number(entries.length)} </small>${right}</summary>
        ${open && html`<div>${entries.slice(0, shown).map(([key, one]) => html`<${Node} key=${key}
            name=${key} value=${one} depth=${depth + 1}/>`)}
        ${entries.length > shown && html`<button type="button" class="button small"
            onClick=${() => setShown(shown + 1000)}>${t('viewer.more',
        { n: number(entries.length - shown) })}</button>`}</div>`}</details>`;
}

// As it was written, exact numbers included.
function write(value, indent = '') {
    if (value instanceof ExactNumber)
        return value.source;
    if (!isBranch(value))
        return JSON.stringify(value) ?? 'null';
    const inner = `${indent}  `;
    const parts = Array.isArray(value) ? value.map((one) => write(one, inner))
        : Object.entries(value).map(([key, one]) => `${JSON.stringify(key)}: ${write(one, inner)}`);
    const [left, right] = Array.isArray(value) ? '[]' : '{}';
    return parts.length ? `${left}\n${inner}${parts.join(`,\n${inner}`)}\n${indent}${right}`
        : left + right;
}

// A string of base64 stands for its bytes; anything else for those of its text.
function bytesOf(value) {
    if (typeof value === 'string' && value.length >= 8 && value.length % 4 === 0
        && /^[A-Za-z0-9+/]+={0,2}$/.test(value))
        return Uint8Array.from(atob(value), (letter) => letter.charCodeAt(0));
    return new TextEncoder().encode(typeof value === 'string' ? value : write(value));
}

function hex(bytes) {
    const lines = [];
    for (let at = 0; at < Math.min(bytes.length, BYTES_SHOWN); at += 16) {
        const row = [...bytes.slice(at, at + 16)];
        const digits = row.map((byte) => byte.toString(16).padStart(2, '0')).join(' ').padEnd(47);
        const letters = row.map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : '·'));
        lines.push(`${at.toString(16).padStart(6, '0')}  ${digits}  ${letters.join('')}`);
    }
    return lines.join('\n');
}

export function Viewer({ label, value }) {
    const [mode, setMode] = useState('tree');
    const text = useMemo(() => (value === undefined ? '' : typeof value === 'string' && mode === 'text'
        ? value : write(value)), [value, mode]);
    if (value === null || value === undefined)
        return html`<p class="faint">${t('viewer.none')}</p>`;
    if (isSealed(value))
        return html`<p><${Sealed} value=${value}/></p>`;
    const modes = ['tree', 'text', 'hex'];
    return html`<div class="viewer"><div class="viewer-head" role="group" aria-label=${label}>
        ${modes.map((one) => html`<button type="button" key=${one} class="segment"
            aria-pressed=${mode === one ? 'true' : 'false'}
            onClick=${() => setMode(one)}>${t(`viewer.${one}`)}</button>`)}<${Copy} text=${text}/></div>
        ${mode === 'tree' && html`<div class="json" tabindex="0" role="region"
            aria-label=${label}><${Node} name=${null} value=${value} depth=${0}/></div>`}
        ${mode === 'text' && html`<pre tabindex="0" role="region"
            aria-label=${label}>${text.slice(0, TEXT_SHOWN)}${text.length > TEXT_SHOWN ? '\n…' : ''}</pre>`}
        ${mode === 'hex' && html`<pre class="hex" tabindex="0" role="region"
            aria-label=${label}>${hex(bytesOf(value))}</pre>`}</div>`;
}
