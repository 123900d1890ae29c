// The conversation of a task that an agent works on, of its newest checkpoint: messages, tool calls with
// arguments and results, what it used; and the answers to a question about a call that may have happened.
import { html } from '../html.js';
import { attempt, post } from '../api.js';
import { Button, Facts } from './controls.js';
import { Viewer } from './json.js';
import { NotShown, Sealed, isSealed } from './sealed.js';
import { duration, number, t } from '../text.js';

const NAME = 'conversation';
const MAX_TEXT = 20000; // of a message at once

// The newest one comes first.
export const conversationOf = (checkpoints) => (checkpoints ?? []).find((one) => one.checkpoint_name === NAME
    && one.is_valid && (one.redacted || isSealed(one.recoverable_data) || one.recoverable_data?.conversation === 1));

function parsed(text) {
    try {
        return JSON.parse(text);
    } catch {
        return text;
    }
}

const money = (trillionths) => (trillionths / 1e12).toFixed(6);

function Text({ text }) {
    return html`<pre class="said">${text.slice(0, MAX_TEXT)}${text.length > MAX_TEXT && '…'}</pre>`;
}

function Calls({ calls, results, begun }) {
    return calls.map((call) => html`<div class="tool" key=${call.id}><header><strong>${call.function.name}</strong>
        ${!results.has(call.id) && call.function.name !== 'finalAnswer' && html`<span class="tag ${begun.includes(call.id) ? 'warn' : ''}">${t(
        begun.includes(call.id) ? 'talk.begun' : 'talk.open')}</span>`}</header>
        <${Viewer} label=${`${t('talk.arguments')}: ${call.function.name}`} value=${parsed(call.function.arguments)}/>
        ${results.has(call.id) && html`<${Text} text=${results.get(call.id)}/>`}</div>`);
}

function Message({ message, results, begun }) {
    return html`<li class=${`message ${message.role}`}><header><strong>${t(`talk.${message.role}`)}</strong></header>
        ${message.content && html`<${Text} text=${message.content}/>`}
        ${message.tool_calls && html`<${Calls} calls=${message.tool_calls} results=${results} begun=${begun}/>`}</li>`;
}

function Decide({ task, reload }) {
    const answer = (decision) => async () => {
        await attempt(() => post(`/v1/tasks/${task.id}:resume`, { decision }), t('done.resume', { name: task.name ?? task.type }));
        await reload();
    };
    return html`<p class="buttons">${['retry', 'skip', 'fail'].map((word) => html`<${Button} key=${word}
        op="POST /v1/tasks/{id}:resume" data-decision=${word} onClick=${answer(word)}>${t(`talk.decide.${word}`)}<//>`)}</p>`;
}

// An id is given once per answer only: results belong to the calls before them.
function turns(messages) {
    const shown = [];
    for (const message of messages)
        if (message.role === 'tool')
            shown.at(-1)?.results.set(message.tool_call_id, message.content);
        else
            shown.push({ message, results: new Map() });
    return shown;
}

export function Conversation({ task, checkpoint, reload }) {
    if (checkpoint.redacted)
        return html`<${NotShown}/>`;
    if (isSealed(checkpoint.recoverable_data))
        return html`<${Sealed} value=${checkpoint.recoverable_data}/>`;
    const { messages, used, begun, step } = checkpoint.recoverable_data;
    const shown = turns(messages);
    return html`<${Facts} rows=${[[t('talk.calls'), number(used.calls)],
        [t('talk.tokens'), `${number(used.input_tokens)} + ${number(used.output_tokens)}`],
        [t('talk.cost'), money(used.cost)], [t('talk.time'), duration(used.time_ms)], [t('talk.step'), number(step)]]}/>
        ${task.status === 'paused' && begun.length > 0 && html`<${Decide} task=${task} reload=${reload}/>`}
        <ol class="conversation">${shown.map((one, index) => html`<${Message} key=${index}
        message=${one.message} results=${one.results} begun=${index === shown.length - 1 ? begun : []}/>`)}</ol>`;
}
