// Dialogs: to look at something, to confirm, to fill in. The first field has the focus, Enter submits, and
// what was typed is not lost without a question.
import { html, useEffect, useLayoutEffect, useRef, useState } from '../html.js';
import { t } from '../text.js';
import { Button, Problem } from './controls.js';

const FIELD = 'input:not(:disabled), select:not(:disabled), textarea:not(:disabled)';

// The browser's own: keeps the focus inside, gives it back. onClose is called for Escape, × and a click
// beside it; the caller decides whether the dialog closes.
export function Dialog({ title, onClose, children, wide = false }) {
    const box = useRef(null);
    const pressed = useRef(null); // where a click began: text that is marked beyond the edge closes nothing
    useLayoutEffect(() => { // before anything else is typed
        const before = document.activeElement;
        const at = box.current;
        at.showModal();
        (at.querySelector(FIELD) ?? at.querySelector('footer button'))?.focus();
        if (document.activeElement.type === 'number')
            document.activeElement.select();
        return () => before?.isConnected && before.focus();
    }, []);
    function leave(event) {
        event.preventDefault();
        onClose();
    }
    return html`<dialog ref=${box} class=${wide ? 'wide' : ''} aria-labelledby="dialog-title"
        onKeyDown=${(event) => event.key === 'Escape' && leave(event)} onCancel=${leave}
        onPointerDown=${(event) => { pressed.current = event.target; }}
        onClick=${(event) => event.target === box.current && pressed.current === box.current && onClose()}>
        <div class="dialog-body"><header><h2 id="dialog-title">${title}</h2>
        <button type="button" class="close" aria-label=${t('action.close')}
            onClick=${onClose}>×</button></header>${children}</div></dialog>`;
}

export function Confirm({ title, text, action, kind = 'primary', onConfirm, onClose }) {
    return html`<${Dialog} title=${title} onClose=${onClose}><p>${text}</p>
        <footer><${Button} onClick=${onClose}>${t('action.back')}<//>
        <${Button} kind=${kind} onClick=${async () => { await onConfirm(); onClose(); }}>${action}<//>
        </footer><//>`;
}

// In place of the buttons, when something that was typed would be lost.
function Unsaved({ keep, drop }) {
    const place = useRef(null);
    useLayoutEffect(() => { // before anything else is typed
        const before = document.activeElement;
        place.current.querySelector('button').focus();
        return () => before?.isConnected && before.focus();
    }, []);
    return html`<footer ref=${place} class="unsaved"><p role="alert">${t('form.unsaved')}</p>
        <${Button} kind="primary" onClick=${keep}>${t('form.keep')}<//>
        <${Button} kind="danger" onClick=${drop}>${t('form.drop')}<//></footer>`;
}

// A form in a dialog. onSubmit saves and closes, or throws what was refused; children(error) shows the
// fields, and names says at which of them an error can be shown. dirty: something was typed.
export function FormDialog({ title, onClose, onSubmit, submit = t('action.save'), kind = 'primary', dirty, names, wide,
    children }) {
    const [error, setError] = useState(null);
    const [asking, setAsking] = useState(false);
    const [busy, setBusy] = useState(false);
    const form = useRef(null);
    const shown = error && (names.includes(error.field) ? error : { ...error, message: error.message, field: null });
    async function send(event) {
        event.preventDefault();
        if (busy)
            return;
        setBusy(true);
        setError(null);
        try {
            await onSubmit();
        } catch (failure) {
            setError(failure);
        }
        setBusy(false);
    }
    useEffect(() => { // where it is said what is wrong, wherever the form was scrolled to
        const at = error && (form.current.querySelector('[aria-invalid=true]')
            ?? form.current.querySelector('.problem'));
        at?.scrollIntoView({ block: 'center' });
        at?.focus({ preventScroll: true });
    }, [error]);
    useEffect(() => {
        const stay = (event) => event.preventDefault();
        if (dirty)
            addEventListener('beforeunload', stay);
        return () => removeEventListener('beforeunload', stay);
    }, [dirty]);
    const leave = () => (asking ? setAsking(false) : dirty ? setAsking(true) : onClose());
    return html`<${Dialog} title=${title} onClose=${leave} wide=${wide}><form ref=${form} onSubmit=${send}
        class="form" novalidate>${children(shown)}
        ${shown && !shown.field && html`<${Problem} error=${shown}/>`}
        ${asking ? html`<${Unsaved} keep=${() => setAsking(false)} drop=${onClose}/>`
        : html`<footer><${Button} onClick=${leave}>${t('action.back')}<//><button type="submit"
            class=${`button ${kind}`} aria-busy=${busy ? 'true' : null}>${submit}</button></footer>`}</form><//>`;
}
