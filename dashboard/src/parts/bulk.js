// Cancel or retry everything that fits the filters: first how many that are, then, when confirmed,
// page by page with the way to stop. The server does a thousand at a time.
import { html, useEffect, useRef, useState } from '../html.js';
import { post, query } from '../api.js';
import { number, t, tn } from '../text.js';
import { Button, Problem } from './controls.js';
import { Dialog } from './dialog.js';
import { Progress } from './status.js';

const COUNTED_MOST = 200000;
const HELD_MS = 1000; // a server that did some and cannot continue just now is asked again after this long

async function pages(verb, filters, dryRun, tell, stopped) {
    const total = { matched: 0, changed: 0, refused: 0, refusal: null, held: null };
    let cursor = null;
    do {
        const page = await post(`/v1/tasks:${verb}${query({ ...filters, cursor,
            dry_run: dryRun ? 'true' : '' })}`);
        for (const key of ['matched', 'changed', 'refused'])
            total[key] += page[key];
        total.refusal ??= page.refusal;
        total.held = page.stopped ?? null;
        cursor = page.next_cursor;
        tell({ ...total, more: cursor !== null });
        if (page.stopped)
            await new Promise((resolve) => setTimeout(resolve, HELD_MS));
    } while (cursor && !stopped() && !(dryRun && total.matched >= COUNTED_MOST));
}

export function Bulk({ verb, filters, onClose }) {
    const [counted, setCounted] = useState(null);
    const [done, setDone] = useState(null);
    const [phase, setPhase] = useState('count');
    const [error, setError] = useState(null);
    const stop = useRef(false);
    useEffect(() => {
        pages(verb, filters, true, setCounted, () => stop.current)
            .then(() => setPhase((now) => (now === 'count' ? 'ask' : now)), setError);
        return () => { stop.current = true; };
    }, []);
    async function run() {
        setPhase('run');
        try {
            await pages(verb, filters, false, setDone, () => stop.current);
        } catch (failure) {
            setError(failure);
        }
        setPhase('end');
    }
    const words = Object.entries(filters).map(([key, value]) => html`<code key=${key}>${key}:${value}</code> `);
    const many = counted && `${number(counted.matched)}${counted.more ? '+' : ''}`;
    return html`<${Dialog} title=${t(`bulk.all.${verb}`)} onClose=${onClose}>
        <p>${t('bulk.fit')} ${words}</p><${Problem} error=${error}/>
        <p class="big-count" role="status">${phase === 'count' && !counted ? t('bulk.counting')
        : t(`bulk.preview.${verb}`, { n: many ?? '0' })}</p>
        ${done && html`<${Progress} value=${counted?.matched ? (100 * done.matched) / counted.matched : 100}
            label=${t(`bulk.all.${verb}`)}/><p role="status">${tn(`bulk.done.${verb}`, done.changed)}
            ${done.refused > 0 && html` ${tn('bulk.refused', done.refused, { why: done.refusal })}`}
            ${done.held && html` ${t('bulk.held', { why: done.held })}`}</p>`}
        <footer>${phase === 'run' ? html`<${Button} onClick=${() => { stop.current = true; }}>${t(
        'action.stop')}<//>` : html`<${Button} onClick=${onClose}>${t(phase === 'end' ? 'action.close'
        : 'action.back')}<//>`}
        ${phase !== 'end' && phase !== 'run' && html`<${Button} kind=${verb === 'cancel' ? 'danger'
        : 'primary'} disabled=${!counted?.matched} onClick=${run}>${t(`bulk.go.${verb}`,
    { n: many ?? '' })}<//>`}</footer><//>`;
}
