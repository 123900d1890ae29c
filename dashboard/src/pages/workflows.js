// Workflows: tasks that belong together, as far as they are among the newest or still wait for others.
// The server keeps no list of them; any id, of a workflow or of a task in it, can be typed in.
import { html } from '../html.js';
import { get, name, useLoad } from '../api.js';
import { Ago, Empty, Loading, Page, Problem } from '../parts/controls.js';
import { STATUSES } from '../parts/status.js';
import { go, link } from '../route.js';
import { number, statusText, t } from '../text.js';

const NEWEST_READ = 500;
const COUNTED = 10; // of these all tasks are counted, of the others those that were read

async function load() {
    const pages = await Promise.all([get(`/v1/tasks?limit=${NEWEST_READ}`),
        get(`/v1/tasks?status=blocked&limit=${NEWEST_READ}`)]);
    const tasks = new Map(pages.flatMap((page) => page.items).map((task) => [task.id, task]));
    const found = new Map();
    for (const task of tasks.values()) {
        if (!task.workflow_id)
            continue;
        const one = found.get(task.workflow_id) ?? { id: task.workflow_id, counts: {}, made: task.created_at };
        one.counts[task.status] = (one.counts[task.status] ?? 0) + 1;
        one.made = one.made > task.created_at ? one.made : task.created_at;
        found.set(task.workflow_id, one);
    }
    return [...found.values()].sort((a, b) => (a.made < b.made ? 1 : -1));
}

function tally(tasks) {
    const counts = {};
    tasks.forEach((task) => { counts[task.status] = (counts[task.status] ?? 0) + 1; });
    return counts;
}

// How far it is, in the colours of the statuses; the words beside it say the same.
function Counts({ one, whole }) {
    const all = useLoad(async () => whole && tally((await get(`/v1/workflows/${name(one.id)}`)).items),
        [whole, one.id, one.counts]);
    const counts = all.data || one.counts;
    const known = STATUSES.filter((status) => counts[status]);
    return html`<span class="parts" aria-hidden="true">${known.map((status) => html`<i key=${status}
        class=${status} style=${{ flexGrow: counts[status] }}></i>`)}</span>
        <small>${known.map((status) => `${statusText(status)} ${number(counts[status])}`).join(' · ')}</small>`;
}

function Open() {
    function submit(event) {
        event.preventDefault();
        const id = event.target.elements.id.value.trim();
        if (id)
            go('workflows', id);
    }
    return html`<form class="filters" onSubmit=${submit}><label class="grow"><span>${t('workflows.id')}</span>
        <input name="id" type="search" autocomplete="off" spellcheck=${false}/></label>
        <button type="submit" class="button">${t('workflows.open')}</button></form>`;
}

export default function Workflows() {
    const list = useLoad(load, [], 5000);
    return html`<${Page} title=${t('workflows.title')} lead=${t('workflows.lead')}><${Open}/>
        <${Problem} error=${list.error} retry=${list.reload}/>
        ${!list.data && !list.error && html`<${Loading}/>`}
        ${list.data?.length === 0 && html`<${Empty} title=${t('workflows.empty')} text=${t('workflows.emptyText')}
            op="POST /v1/tasks" command='perdura enqueue etl:load --workflow-id nightly --depends-on ID'/>`}
        ${list.data?.length > 0 && html`<div class="card flush"><div class="table-place"><table class="stack"><thead><tr>
            <th>${t('workflow.one')}</th><th>${t('workflows.tasks')}</th><th class="n">${t('workflows.newest')}</th>
            </tr></thead><tbody>${list.data.map((one, at) => html`<tr key=${one.id}><td class="main"><a
            href=${link('workflows', one.id)}>${one.id}</a></td><td><${Counts} one=${one} whole=${at < COUNTED}/></td>
            <td class="n"><${Ago} time=${one.made}/></td></tr>`)}</tbody></table></div></div>`}<//>`;
}
