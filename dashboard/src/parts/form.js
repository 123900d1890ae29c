// Forms for what is planned: a table of fields makes the inputs, the server checks them and its answer
// is shown at the field it is about. Empty means: the default.
import { html, useRef, useState } from '../html.js';
import { patch, post } from '../api.js';
import { notify } from '../store.js';
import { t } from '../text.js';
import { Field, Select } from './controls.js';
import { FormDialog } from './dialog.js';
import { WEEKDAYS, weekdayName } from './pattern.js';

// field: { name, label, hint?, kind: text | number | json | select | check | clock | instant | days | words | many,
//          options?, show?(values), required?, placeholder?(values) }; a hint may be a function of the values, too.
//          words: names with commas between; many: some of the options, each [value, word, explanation]
// An instant as the browser's input for dates wants it: local, to the second.
function toLocal(time) {
    const date = new Date(time);
    return new Date(date - date.getTimezoneOffset() * 60e3).toISOString().slice(0, 19);
}

function toText(field, value) {
    if (field.kind === 'check')
        return value ?? field.fallback ?? true;
    if (field.kind === 'days' || field.kind === 'many')
        return value ?? [];
    if (value === null || value === undefined)
        return '';
    if (field.kind === 'instant')
        return toLocal(value);
    return field.kind === 'json' ? JSON.stringify(value, null, 1) : String(value);
}

function toValue(field, text) {
    if (field.kind === 'check' || field.kind === 'days' || field.kind === 'many')
        return text;
    if (text === '')
        return null;
    if (field.kind === 'words')
        return text.split(',').map((word) => word.trim()).filter(Boolean);
    if (field.kind === 'number')
        return Number(text);
    if (field.kind === 'instant')
        return new Date(text).toISOString();
    return field.kind === 'json' ? JSON.parse(text) : text;
}

export function valuesOf(fields, texts) {
    const body = {};
    for (const field of fields)
        if (!field.show || field.show(texts)) {
            try {
                body[field.name] = toValue(field, texts[field.name] ?? '');
            } catch {
                throw Object.assign(new Error(t('form.json')), { field: field.name });
            }
        }
    return body;
}

const TYPES = { number: 'number', clock: 'time', instant: 'datetime-local' };

function Days({ value, change, given }) {
    const toggle = (day) => change(WEEKDAYS.filter((one) => value.includes(one) !== (one === day)));
    return html`<div class="days" ...${given} role="group" aria-label=${t('pattern.weekdays')}>
        ${WEEKDAYS.map((day) => html`<button type="button" key=${day} class="segment"
            aria-pressed=${value.includes(day) ? 'true' : 'false'} title=${weekdayName(day, 'long')}
            onClick=${() => toggle(day)}>${weekdayName(day)}</button>`)}</div>`;
}

function Many({ field, value, change, given }) {
    const toggle = (id) => change(field.options.map(([one]) => one).filter((one) => value.includes(one) !== (one === id)));
    return html`<div class="many" ...${given} role="group" aria-label=${field.label} tabindex="-1">${field.options.map(([id, word,
        text]) => html`<label key=${id}><input type="checkbox" checked=${value.includes(id)} onChange=${() => toggle(id)}/>
        <span><code>${word}</code> <small>${text}</small></span></label>`)}</div>`;
}

function Input({ field, value, change, given }) {
    if (field.kind === 'days')
        return html`<${Days} value=${value} change=${change} given=${given}/>`;
    if (field.kind === 'many')
        return html`<${Many} field=${field} value=${value} change=${change} given=${given}/>`;
    if (field.kind === 'select')
        return html`<${Select} ...${given} value=${value} options=${field.options} onChange=${change}/>`;
    if (field.kind === 'check')
        return html`<input ...${given} type="checkbox" checked=${value}
            onChange=${(event) => change(event.target.checked)}/>`;
    if (field.kind === 'json')
        return html`<textarea ...${given} rows="3" spellcheck=${false} value=${value}
            onInput=${(event) => change(event.target.value)}></textarea>`;
    return html`<input ...${given} type=${TYPES[field.kind] ?? 'text'} value=${value}
        step=${field.kind === 'instant' ? 1 : null}
        spellcheck=${false} autocomplete="off" list=${field.list ?? null} required=${field.required}
        onInput=${(event) => change(event.target.value)}/>`;
}

const filled = (text) => text !== '' && !(Array.isArray(text) && text.length === 0);

// The fields as values; what must be filled in and is not is said here, in the reader's language.
function checked(fields, texts) {
    const empty = fields.find((field) => field.required && !filled(texts[field.name] ?? ''));
    if (empty)
        throw Object.assign(new Error(t('form.required')), { field: empty.name });
    return valuesOf(fields, texts);
}

// thing: what is edited, or null for a new one; path: where it is posted or patched. What is not changed
// is not sent. shape turns the
// values of all fields into what is sent; extra is shown below them and saved behind them, and
// extraChanged says whether it was changed. aliases: which field shows what the server says about another.
export function Form({ title, fields, thing, path, fixed = {}, onClose, done, aside, extra, saveExtra,
    extraChanged = false, shape, aliases = {}, quiet = false, submit }) {
    const [start] = useState(() => Object.fromEntries(fields.map((field) => [field.name,
        toText(field, thing ? thing[field.name] : field.fallback)])));
    const [texts, setTexts] = useState(start);
    const made = useRef(null); // so that saving again, after extra was refused, changes what was made
    const shown = fields.filter((field) => !field.show || field.show(texts));
    const names = shown.map((field) => field.name);
    async function save() {
        const values = checked(shown, texts);
        const changed = shape ? shape(values) : Object.fromEntries(Object.entries(values)
            .filter(([key]) => made.current || texts[key] !== start[key]));
        try {
            if (Object.keys(changed).length && (thing || made.current))
                await patch(thing ? path : `${path}/${made.current.id}`, changed);
            else if (!thing && !made.current) // what is left empty is left to the server
                made.current = await post(path, { ...fixed, ...Object.fromEntries(Object.entries(shape
                    ? changed : values)
                    .filter(([, value]) => value !== null)) });
            await saveExtra?.(thing ?? made.current);
        } catch (failure) { // pattern_config.time is the field time
            failure.field = failure.field?.split(/[.[]/).map((part) => (names.includes(part) ? part : aliases[part]))
                .find((part) => names.includes(part)) ?? failure.field;
            throw failure;
        }
        if (!quiet)
            notify(t('form.saved'));
        done();
        onClose();
    }
    const dirty = extraChanged || JSON.stringify(texts) !== JSON.stringify(start);
    return html`<${FormDialog} title=${title} onClose=${onClose} wide=${Boolean(aside)} onSubmit=${save}
        submit=${submit} dirty=${dirty} names=${names}>${(error) => html`<div class=${aside ? 'with-aside' : ''}>
        <div class="form-fields">
        ${shown.map((field) => html`<${Field} key=${field.name} label=${field.label}
            hint=${typeof field.hint === 'function' ? field.hint(texts) : field.hint}
            error=${error?.field === field.name ? error.message : null}>${(given) => html`<${Input}
            field=${field} given=${field.placeholder ? { ...given, placeholder: field.placeholder(texts) } : given}
            value=${texts[field.name]}
            change=${(next) => setTexts((now) => ({ ...now, [field.name]: next }))}/>`}<//>`)}${extra}</div>
        ${aside && html`<div class="aside">${aside(texts)}</div>`}</div>`}<//>`;
}
