// What a schedule would do, while it is typed: in words, and the next instants; or what is wrong.
import { html, useEffect, useState } from '../html.js';
import { post } from '../api.js';
import { dayAndTime, relative, t } from '../text.js';

const AFTER_MS = 200;

// path takes the body and answers { items, explain }.
export function usePreview(path, body) {
    const [state, setState] = useState({ answer: null, error: null });
    const key = JSON.stringify([path, body]);
    useEffect(() => {
        let mine = true;
        const timer = setTimeout(() => body && post(path, body).then(
            (answer) => mine && setState({ answer, error: null }),
            (error) => mine && setState({ answer: null, error })), AFTER_MS);
        return () => { mine = false; clearTimeout(timer); };
    }, [key]);
    return state;
}

export function Preview({ answer, error }) {
    return html`<div class=${`preview ${error ? 'wrong' : ''}`} role="status" aria-live="polite">
        ${error && html`<p class="bad">${error.message}</p>`}
        ${answer && html`<p><strong>${answer.explain}</strong></p>
            ${answer.items.length > 0 ? html`<ol>${answer.items.map((time) => html`<li key=${time}><time
                datetime=${time}>${dayAndTime(time)}</time> <span class="faint">${relative(time)}</span></li>`)}
            </ol>` : html`<p class="faint">${t('preview.never')}</p>`}`}
        ${!answer && !error && html`<p class="faint">${t('preview.type')}</p>`}</div>`;
}
