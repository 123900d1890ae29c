// What is not shown, and why: encrypted without its key, destroyed, changed; or not for this credential.
import { html } from '../html.js';
import { t } from '../text.js';

const KNOWN = new Set(['encrypted', 'destroyed', 'damaged']);

export const isSealed = (value) => value !== null && typeof value === 'object' && value.encrypted === true
    && Object.keys(value).every((key) => KNOWN.has(key));

export function Sealed({ value }) {
    return html`<span class="sealed"><svg viewBox="0 0 16 16" aria-hidden="true"><path
        d="M3 7h10v7H3zm2 0V5a3 3 0 0 1 6 0v2"/></svg>${t(value.damaged ? 'sealed.damaged' : value.destroyed
        ? 'sealed.destroyed' : 'sealed.locked')}</span>`;
}

// A text that may be encrypted.
export const shownText = (value) => (isSealed(value) ? html`<${Sealed} value=${value}/>` : value);

export function NotShown() {
    return html`<p class="faint">${t('redacted')}</p>`;
}
