// What a task depends on: its parents with their statuses, and, where one of them decided that it never runs,
// which one and where that began.
import { html } from '../html.js';
import { get, name, useLoad } from '../api.js';
import { may } from '../rights.js';
import { link } from '../route.js';
import { number, t, tn } from '../text.js';
import { Card } from './controls.js';
import { ENDED, Status } from './status.js';

const SHOWN = 12;
const FAILED = new Set(['failed', 'dead_letter', 'partial']);
const met = (type, status) => (type === 'success' ? status === 'completed'
    : type === 'failure' ? FAILED.has(status) : true);
const unmet = (parent) => ENDED.has(parent.status) && !met(parent.type, parent.status);

// The parents of a task among all that are known; one that was deleted has only its id.
const parentsOf = (task, known) => task.depends_on.map((one) => ({ ...known.get(one.task), id: one.task,
    type: one.type }));

// Where it began: the tasks that ended wrongly themselves and were not only carried along.
function rootsOf(task, known, seen = new Set()) {
    return parentsOf(task, known).filter(unmet).flatMap((parent) => {
        if (seen.has(parent.id))
            return [];
        seen.add(parent.id);
        const above = parent.status === 'cancelled' ? rootsOf(known.get(parent.id), known, seen) : [];
        return above.length ? above : [parent];
    });
}

// null for a task that depends on none, and until they are known.
export function useParents(task) {
    const many = task?.depends_on?.length ?? 0;
    const graph = useLoad((signal) => (many && may('GET /v1/workflows/{id}') ? get(`/v1/workflows/${name(task.id)}`, { signal }) : null),
        [task?.id, many, task?.version]);
    if (!many || !graph.data)
        return null;
    const known = new Map(graph.data.items.map((one) => [one.id, one]));
    const parents = parentsOf(task, known);
    return { parents, culprits: parents.filter(unmet), roots: rootsOf(task, known) };
}

const title = (task) => task.name ?? task.type ?? task.id;
const named = (task, known = title(task)) => html`<a href=${link('tasks', task.id)}>${known}</a> ${task.status
    && html`<${Status} status=${task.status}/>`}`;

// For a task that one of its parents kept from running.
export function Culprits({ found }) {
    if (!found?.culprits.length)
        return null;
    const { culprits, roots } = found;
    const began = roots.filter((one) => !culprits.some((other) => other.id === one.id));
    const list = (tasks) => html`<ul>${tasks.slice(0, SHOWN).map((one) => html`<li key=${one.id}>${named(one)}
        ${' '}<span class="faint">${t(`hadTo.${one.type}`)}</span></li>`)}${tasks.length > SHOWN && html`<li
        class="faint">${t('viewer.more', { n: number(tasks.length - SHOWN) })}</li>`}</ul>`;
    return html`<p>${tn('depends.culprits', culprits.length)}</p>${list(culprits)}
        ${began.length > 0 && html`<p>${t('depends.began')}</p>${list(began)}`}`;
}

export function Depends({ found, task }) {
    if (!found)
        return null;
    const order = (one) => (unmet(one) ? 0 : ENDED.has(one.status) ? 2 : 1);
    const rows = [...found.parents].sort((a, b) => order(a) - order(b));
    return html`<${Card} title=${t('needs.title')} id="depends" extra=${html`<a href=${link('workflows',
        task.workflow_id ?? task.id)}>${t('workflow.show')}</a>`}><ul class="depends">${rows.slice(0, SHOWN)
        .map((one) => html`<li key=${one.id}>${named(one)} <span class="faint">${t(`hasTo.${one.type}`)}</span>
        ${unmet(one) && html` <span class="tag bad">${t('depends.unmet')}</span>`}</li>`)}
        ${rows.length > SHOWN && html`<li class="faint">${t('viewer.more', { n: number(rows.length
        - SHOWN) })}</li>`}</ul><//>`;
}
