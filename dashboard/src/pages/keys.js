// Encryption at rest: which keys the server has, what they wrap, how far a rotation is, what was destroyed
// and what could not be opened. Keys themselves are never shown: the API does not tell them.
import { html, useRef, useState } from '../html.js';
import { get, post, useLoad } from '../api.js';
import { Button, Empty, Facts, Field, Loading, Page, Problem, When } from '../parts/controls.js';
import { Dialog, FormDialog } from '../parts/dialog.js';
import { Progress } from '../parts/status.js';
import { notify } from '../store.js';
import { number, t, tn } from '../text.js';

const sum = (list, key) => list.reduce((all, one) => all + one[key], 0);
const usable = (state) => sum(state.data_keys, 'count') - sum(state.data_keys, 'destroyed');

// Step by step, as the API does it; it may be stopped, and continues where it was.
function Rotate({ state, onClose, done }) {
    const [left, setLeft] = useState(null);
    const [error, setError] = useState(null);
    const [phase, setPhase] = useState('ask');
    const stop = useRef(false);
    const total = usable(state);
    async function run() {
        setPhase('run');
        stop.current = false;
        try {
            for (let step = null; !stop.current && (step === null || (step.left > 0 && step.rotated > 0));) {
                step = await post('/v1/keys:rotate');
                setLeft(step.left);
            }
        } catch (failure) {
            setError(failure);
        }
        setPhase('end');
        done();
    }
    const now = left ?? state.left;
    const leave = () => { stop.current = true; onClose(); };
    return html`<${Dialog} title=${t('key.rotateTitle')} onClose=${leave}><p>${t('key.rotateText', { key: state.current })}</p>
        <${Problem} error=${error}/><${Progress} value=${total ? (100 * (total - now)) / total : 100} label=${t('key.rotation')}/>
        <p role="status">${tn('key.left', now)}</p><footer>${phase === 'run' ? html`<${Button} onClick=${() => { stop.current = true; }}>${t(
        'action.stop')}<//>` : html`<${Button} onClick=${leave}>${t(phase === 'end' ? 'action.close' : 'action.back')}<//>`}
        ${phase === 'ask' && html`<${Button} kind="primary" onClick=${run}>${t('key.rotate')}<//>`}</footer><//>`;
}

// What is typed twice is meant.
function Destroy({ onClose, done }) {
    const [values, setValues] = useState({ user_id: '', namespace: '', again: '' });
    const change = (key) => (event) => setValues({ ...values, [key]: event.target.value });
    const wanted = values.user_id || values.namespace;
    async function destroy() {
        if (!wanted)
            throw Object.assign(new Error(t('form.required')), { field: 'user_id' });
        if (values.again !== wanted)
            throw Object.assign(new Error(t('key.notSame', { name: wanted })), { field: 'again' });
        const state = await post('/v1/keys:destroy', { ...(values.user_id ? { user_id: values.user_id } : {}),
            ...(values.namespace ? { namespace: values.namespace } : {}) });
        notify(tn('key.destroyedNow', state.destroyed));
        done();
        onClose();
    }
    const input = (error, key, hint) => html`<${Field} label=${t(`key.${key}`, { name: wanted })} hint=${hint && t(hint)}
        error=${error?.field === key ? error.message : null}>${(field) => html`<input ...${field} type="text" autocomplete="off"
        spellcheck=${false} value=${values[key]} onInput=${change(key)}/>`}<//>`;
    return html`<${FormDialog} title=${t('key.destroyTitle')} onClose=${onClose} onSubmit=${destroy} names=${Object.keys(values)}
        submit=${t('key.destroy')} kind="danger" dirty=${Object.values(values).some(Boolean)}>${(error) => html`<p>${t('key.destroyText')}</p>
        ${input(error, 'user_id', 'key.userHint')}${input(error, 'namespace', 'key.namespaceHint')}
        ${wanted && input(error, 'again')}`}<//>`;
}

function Wraps({ state }) {
    return html`<div class="card flush"><div class="table-place"><table class="stack"><thead><tr><th>${t('namespace.one')}</th>
        <th>${t('key.one')}</th><th class="n">${t('key.dataKeys')}</th><th class="n">${t('key.destroyed')}</th><th>${t('key.newest')}</th>
        </tr></thead><tbody>${state.data_keys.map((one) => html`<tr key=${`${one.namespace} ${one.key}`}><td class="main">${one.namespace}</td>
        <td data-label=${t('key.one')}><code>${one.key}</code> ${!one.available && html`<span class="tag bad">${t('key.missing')}</span>`}</td>
        <td class="n" data-label=${t('key.dataKeys')}>${number(one.count - one.destroyed)}</td>
        <td class="n" data-label=${t('key.destroyed')}>${number(one.destroyed)}</td>
        <td data-label=${t('key.newest')}><${When} time=${one.newest_at}/></td></tr>`)}</tbody></table></div></div>`;
}

export default function Keys() {
    const keys = useLoad(() => get('/v1/keys'), [], 5000);
    const [dialog, setDialog] = useState('');
    const state = keys.data;
    const close = () => setDialog('');
    if (!state)
        return html`<${Page} title=${t('nav.keys')}>${keys.error ? html`<${Problem} error=${keys.error}
            retry=${keys.reload}/>` : html`<${Loading}/>`}<//>`;
    const total = usable(state);
    const missing = state.data_keys.filter((one) => !one.available && one.count > one.destroyed);
    const texts = ['opened', 'locked', 'destroyed', 'damaged'].map((key) => [t(`key.texts.${key}`), number(state.texts[key])]);
    return html`<${Page} title=${t('nav.keys')} lead=${t('key.lead')} actions=${state.keys.length > 0 && html`
        ${state.left > 0 && state.encrypts && html`<${Button} op="POST /v1/keys:rotate" kind="primary" onClick=${() => setDialog('rotate')}>${t('key.rotate')}…<//>`}
        ${total > 0 && html`<${Button} op="POST /v1/keys:destroy" kind="danger" onClick=${() => setDialog('destroy')}>${t('key.destroy')}…<//>`}`}>
        <${Problem} error=${keys.error} retry=${keys.reload}/>
        ${missing.length > 0 && html`<div class="problem" role="note"><strong>${t('key.missing')}</strong> <span>${t('key.missingText',
        { keys: [...new Set(missing.map((one) => one.key))].join(', ') })}</span></div>`}
        ${state.texts.damaged > 0 && html`<div class="problem" role="note"><strong>${t('key.texts.damaged')}</strong> <span>${t(
        'key.damagedText')}</span></div>`}
        ${!state.encrypts && state.data_keys.length === 0 ? html`<${Empty} title=${t('key.off')} text=${t('key.offText')}
            command="perdura key add k1 --file /etc/perdura/k1.key"/>` : html`<div class="card"><${Facts} rows=${[
        [t('key.state'), t(state.encrypts ? 'key.on' : 'key.noCurrent')], [t('key.current'), state.current],
        [t('key.what'), t(state.all ? 'key.whatAll' : 'key.whatAsked')], [t('key.per'), t(state.per_user ? 'key.perUser' : 'key.perDay')],
        ...texts]}/></div>
        <div class="card flush"><div class="table-place"><table class="stack"><caption class="visually-hidden">${t('key.here')}</caption>
            <thead><tr><th>${t('key.here')}</th><th class="n">${t('key.wraps')}</th></tr></thead><tbody>${state.keys.map((one) => html`<tr
            key=${one.id}><td class="main"><code>${one.id}</code>${one.id === state.current && html`<span class="tag good">${t(
        'key.isCurrent')}</span>`}</td><td class="n" data-label=${t('key.wraps')}>${number(one.data_keys)}</td></tr>`)}</tbody></table></div></div>
        ${total > 0 && state.encrypts && html`<div class="card"><h2>${t('key.rotation')}</h2><div class="progress-line"><${Progress}
            value=${(100 * (total - state.left)) / total} label=${t('key.rotation')}/><span><span>${number(total - state.left)}/${number(
        total)}</span></span></div><p class="faint">${state.left ? tn('key.left', state.left) : t('key.allCurrent', { key: state.current })}</p></div>`}
        ${state.data_keys.length > 0 && html`<${Wraps} state=${state}/>`}`}
        ${dialog === 'rotate' && html`<${Rotate} state=${state} onClose=${close} done=${keys.reload}/>`}
        ${dialog === 'destroy' && html`<${Destroy} onClose=${close} done=${keys.reload}/>`}<//>`;
}
