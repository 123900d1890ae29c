// Forms for what is planned: a table of fields makes the inputs, the server checks them and its answer
// is shown at the field it is about. Empty means: the default.
import { html, useState } from '../html.js';
import { patch, post } from '../api.js';
import { notify } from '../store.js';
import { t } from '../text.js';
import { Button, Dialog, Field, Problem, Select } from './controls.js';

// field: { name, label, hint?, kind: text | number | json | select | check | lines, options?,
//          show?(values), required? }
function toText(field, value) {
    if (field.kind === 'check')
        return value ?? field.fallback ?? true;
    if (value === null || value === undefined)
        return '';
    return field.kind === 'json' ? JSON.stringify(value, null, 1) : String(value);
}

function toValue(field, text) {
    if (field.kind === 'check')
        return text;
    if (text === '')
        return null;
    if (field.kind === 'number')
        return Number(text);
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

function Input({ field, value, change, given }) {
    if (field.kind === 'select')
        return html`<${Select} ...${given} value=${value} options=${field.options} onChange=${change}/>`;
    if (field.kind === 'check')
        return html`<input ...${given} type="checkbox" checked=${value}
            onChange=${(event) => change(event.target.checked)}/>`;
    if (field.kind === 'json')
        return html`<textarea ...${given} rows="3" spellcheck=${false} value=${value}
            onInput=${(event) => change(event.target.value)}></textarea>`;
    return html`<input ...${given} type=${field.kind === 'number' ? 'number' : 'text'} value=${value}
        spellcheck=${false} autocomplete="off" list=${field.list ?? null} required=${field.required}
        onInput=${(event) => change(event.target.value)}/>`;
}

// thing: what is edited, or null for a new one; path: where it is posted or patched.
export function Form({ title, fields, thing, path, fixed = {}, onClose, done, aside }) {
    const [texts, setTexts] = useState(() => Object.fromEntries(fields.map((field) => [field.name,
        toText(field, thing ? thing[field.name] : field.fallback)])));
    const [error, setError] = useState(null);
    async function save(event) {
        event.preventDefault();
        try {
            const values = valuesOf(fields, texts);
            if (thing)
                await patch(path, values);
            else // what is left empty is left to the server
                await post(path, { ...fixed, ...Object.fromEntries(Object.entries(values)
                    .filter(([, value]) => value !== null)) });
            notify(t('form.saved'));
            done();
            onClose();
        } catch (failure) {
            setError(failure);
        }
    }
    const shown = fields.filter((field) => !field.show || field.show(texts));
    const placed = shown.some((field) => field.name === error?.field);
    return html`<${Dialog} title=${title} onClose=${onClose} wide=${Boolean(aside)}><form onSubmit=${save}
        class="form" novalidate><div class=${aside ? 'with-aside' : ''}><div class="form-fields">
        ${shown.map((field) => html`<${Field} key=${field.name} label=${field.label} hint=${field.hint}
            error=${error?.field === field.name ? error.message : null}>${(given) => html`<${Input}
            field=${field} given=${given} value=${texts[field.name]}
            change=${(next) => setTexts({ ...texts, [field.name]: next })}/>`}<//>`)}</div>
        ${aside && html`<div class="aside">${aside(texts)}</div>`}</div>
        ${error && !placed && html`<${Problem} error=${error}/>`}
        <footer><${Button} onClick=${onClose}>${t('action.back')}<//><button type="submit"
            class="button primary">${t('action.save')}</button></footer></form><//>`;
}
