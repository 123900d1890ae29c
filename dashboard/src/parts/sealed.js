// What is not shown, and why: encrypted without its key, destroyed, changed; or not for this credential.
import { html } from '../html.js';
import { t } from '../text.js';

// Values say it as JSON; where a field is a text, the text is that JSON.
const MARK = /^\{"encrypted":true(,"(destroyed|damaged)":true)?\}$/;

export const isSealed = (value) => (typeof value === 'string' ? MARK.test(value)
    : value !== null && typeof value === 'object' && value.encrypted === true && MARK.test(JSON.stringify(value)));

export function Sealed({ value: given }) {
    const value = typeof given === 'string' ? JSON.parse(given) : given;
    return html`<span class="sealed"><svg viewBox="0 0 16 16" aria-hidden="true"><path
        d="M3 7h10v7H3zm2 0V5a3 3 0 0 1 6 0v2"/></svg>${t(value.damaged ? 'sealed.damaged' : value.destroyed
        ? 'sealed.destroyed' : 'sealed.locked')}</span>`;
}

// A text that may be encrypted.
export const shownText = (value) => (isSealed(value) ? html`<${Sealed} value=${value}/>` : value);

export function NotShown() {
    return html`<p class="faint">${t('redacted')}</p>`;
}
