// A workflow as a graph: who waits for whom, who was spawned by whom, with live statuses. Its own
// layered layout in parts/layers.js; drawn as SVG, moved with the mouse, a finger or the arrow keys.
import { html, useCallback, useEffect, useMemo, useRef, useState } from '../html.js';
import { get, name, useLoad } from '../api.js';
import { Button, Empty, Loading, Page, Problem } from '../parts/controls.js';
import { layers, NODE_HEIGHT, NODE_WIDTH, related } from '../parts/layers.js';
import { STATUSES } from '../parts/status.js';
import { go, link } from '../route.js';
import { useStream } from '../stream.js';
import { number, statusText, t, tn } from '../text.js';

const MARGIN = 24;
const NEAR = 0.04; // the least zoom: 500 nodes in a row still fit
const FAR = 0.45; // below this zoom words cannot be read: boxes are filled with the colour of the status
const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

// A bend from row to row, straight through the gap of each row between.
function pathOf({ x1, y1, x2, y2, gaps }) {
    let path = `M${x1},${y1}`;
    let [x, y] = [x1, y1];
    for (const next of [...gaps, { x: x2, top: y2 - 5, bottom: y2 - 5 }]) {
        const middle = (y + next.top) / 2;
        path += ` C${x},${middle} ${next.x},${middle} ${next.x},${next.top}`;
        if (next.bottom > next.top)
            path += ` V${next.bottom}`;
        [x, y] = [next.x, next.bottom];
    }
    return path;
}

function Edge({ edge, dim }) {
    return html`<path class=${`edge ${edge.kind} ${dim ? 'dim' : ''}`} marker-end="url(#arrow)"
        d=${pathOf(edge)}/>`;
}

function Node({ node, task, focused, onFocus, dim }) {
    const title = task.name ?? task.type;
    return html`<a href=${link('tasks', task.id)} class=${`node ${task.status} ${dim ? 'dim' : ''}`} data-id=${task.id}
        tabindex=${focused ? 0 : -1} onFocus=${onFocus}><title>${title}, ${statusText(task.status)}</title><g transform=${`translate(${node.x},${node.y})`}><rect width=${NODE_WIDTH} height=${NODE_HEIGHT}
            rx="9"/><rect class="mark" width="5" height=${NODE_HEIGHT} rx="2.5"/>
        <text x="16" y="20" class="node-title">${short(title, 22)}</text>
        <text x="16" y="37" class="node-text">${short(`${statusText(task.status)}${task.progress > 0
        && task.progress < 100 ? ` · ${task.progress} %` : ''}`, 28)}</text>
        ${task.status === 'running' && html`<rect class="node-progress" x="0" y=${NODE_HEIGHT - 3}
            height="3" width=${(NODE_WIDTH * task.progress) / 100}/>`}</g></a>`;
}

// Where the picture is: x, y and zoom, with everything that changes them.
function useView(size, place) {
    const [view, setView] = useState({ x: 0, y: 0, k: 1 });
    const drag = useRef(null);
    const fit = useCallback(() => {
        const box = place.current?.getBoundingClientRect();
        if (!box || !size.width)
            return;
        const k = Math.max(NEAR, Math.min(1, (box.width - 2 * MARGIN) / size.width,
            (box.height - 2 * MARGIN) / size.height));
        setView({ k, x: (box.width - size.width * k) / 2, y: Math.max(MARGIN,
            (box.height - size.height * k) / 2) });
    }, [size.width, size.height]);
    const zoom = useCallback((factor, at) => setView((now) => {
        const box = place.current.getBoundingClientRect();
        const centre = at ?? { x: box.width / 2, y: box.height / 2 };
        const k = Math.max(NEAR, Math.min(2.5, now.k * factor));
        return { k, x: centre.x - ((centre.x - now.x) * k) / now.k,
            y: centre.y - ((centre.y - now.y) * k) / now.k };
    }), []);
    useEffect(fit, [fit]);
    useEffect(() => { // a listener of its own: the wheel must not scroll the page here
        const wheel = (event) => {
            event.preventDefault();
            const box = place.current.getBoundingClientRect();
            zoom(Math.exp(-event.deltaY / 400), { x: event.clientX - box.left, y: event.clientY - box.top });
        };
        const at = place.current;
        at?.addEventListener('wheel', wheel, { passive: false });
        return () => at?.removeEventListener('wheel', wheel);
    }, [zoom]);
    const pointer = {
        onPointerDown: (event) => { drag.current = { x: event.clientX - view.x, y: event.clientY - view.y,
            moved: false }; },
        onPointerMove: (event) => {
            const from = drag.current;
            if (!from)
                return;
            const next = { x: event.clientX - from.x, y: event.clientY - from.y };
            if (Math.hypot(next.x - view.x, next.y - view.y) > 3 && !from.moved) {
                from.moved = true;
                place.current.setPointerCapture(event.pointerId);
            }
            if (from.moved)
                setView((now) => ({ ...now, ...next }));
        },
        onPointerUp: () => { drag.current = null; },
        onPointerCancel: () => { drag.current = null; },
        onDragStart: (event) => event.preventDefault(),
    };
    // Brings a node into sight when the keys go there.
    const show = (node) => setView((now) => {
        const box = place.current.getBoundingClientRect();
        const x = node.x * now.k + now.x;
        const y = node.y * now.k + now.y;
        const inside = x > 0 && y > 0 && x + NODE_WIDTH * now.k < box.width
            && y + NODE_HEIGHT * now.k < box.height;
        return inside ? now : { ...now, x: box.width / 2 - (node.x + NODE_WIDTH / 2) * now.k,
            y: box.height / 2 - (node.y + NODE_HEIGHT / 2) * now.k };
    });
    return { view, pointer, zoom, fit, show };
}

function Graph({ tasks, status, find }) {
    const place = useRef(null);
    const shape = JSON.stringify(tasks.map((task) => [task.id, task.parent_id, task.depends_on]));
    const plan = useMemo(() => layers(tasks), [shape]);
    const [focus, setFocus] = useState(plan.nodes[0]?.id);
    const { view, pointer, zoom, fit, show } = useView(plan, place);
    const byId = new Map(tasks.map((task) => [task.id, task]));
    const [near, setNear] = useState(null); // the task the pointer is on
    const around = useMemo(() => (near ? related(plan.edges, near) : null), [near, plan]);
    const wanted = (task) => (!status || task.status === status)
        && (!find || `${task.name ?? ''} ${task.type} ${task.id}`.toLowerCase().includes(find.toLowerCase()));
    const dim = (id) => (around ? !around.has(id) : !wanted(byId.get(id)));
    useEffect(() => { // what is looked for comes into sight
        const first = find && plan.nodes.find((node) => wanted(byId.get(node.id)));
        if (first) {
            setFocus(first.id);
            show(first);
        }
    }, [find]);
    const over = (event) => !event.buttons
        && setNear(event.target.closest?.('.node')?.getAttribute('data-id') ?? null);
    function key(event) {
        const zooms = { '+': 1.25, '=': 1.25, '-': 0.8 }[event.key];
        if (zooms)
            zoom(zooms);
        else if (event.key === '0')
            fit();
        else if (event.key.startsWith('Arrow')) {
            const next = plan.nextTo(focus, event.key.slice(5).toLowerCase());
            if (next) {
                setFocus(next.id);
                show(next);
                requestAnimationFrame(() => place.current.querySelector(`[data-id="${next.id}"]`)?.focus());
            }
        } else {
            return;
        }
        event.preventDefault();
    }
    return html`<div class="graph-place"><div class="graph-tools" role="group" aria-label=${t('graph.zoom')}>
        <${Button} kind="small" aria-label=${t('graph.in')} onClick=${() => zoom(1.25)}>+<//>
        <${Button} kind="small" aria-label=${t('graph.out')} onClick=${() => zoom(0.8)}>−<//>
        <${Button} kind="small" onClick=${fit}>${t('graph.fit')}<//></div>
        <svg class=${`graph ${view.k < FAR ? 'far' : ''}`} ref=${place} role="group"
            aria-label=${t('graph.label')} onKeyDown=${key} onPointerOver=${over}
            onPointerLeave=${() => setNear(null)} ...${pointer}><defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7"
            markerHeight="7" orient="auto"><path d="M0,0 L8,4 L0,8 z"/></marker></defs>
            <g transform=${`translate(${view.x},${view.y}) scale(${view.k})`}>
            ${plan.edges.map((edge) => html`<${Edge} key=${edge.id} edge=${edge}
                dim=${dim(edge.from) || dim(edge.to)}/>`)}
            ${plan.nodes.map((node) => html`<${Node} key=${node.id} node=${node}
                task=${byId.get(node.id)} focused=${node.id === focus} dim=${dim(node.id)}
                onFocus=${() => setFocus(node.id)}/>`)}</g></svg></div>`;
}

// How many of each status; pressed, the others fade.
function Legend({ tasks, status, setStatus, find, setFind }) {
    const counts = {};
    tasks.forEach((task) => { counts[task.status] = (counts[task.status] ?? 0) + 1; });
    return html`<div class="legend"><div class="chips" role="group" aria-label=${t('tasks.byStatus')}>${STATUSES
        .filter((one) => counts[one] || one === status).map((one) => html`<button type="button" key=${one}
        class=${`chip ${one}`} aria-pressed=${one === status ? 'true' : 'false'}
        onClick=${() => setStatus(one === status ? '' : one)}><i aria-hidden="true"></i>${statusText(one)}
        <span class="count">${number(counts[one] ?? 0)}</span></button>`)}</div>
        <input type="search" aria-label=${t('graph.find')} placeholder=${t('graph.find')} value=${find}
            onInput=${(event) => setFind(event.target.value)}/></div>`;
}

export default function Workflow({ id }) {
    const graph = useLoad(() => get(`/v1/workflows/${name(id)}`), [id]);
    const [changes, setChanges] = useState(new Map());
    const [status, setStatus] = useState('');
    const [find, setFind] = useState('');
    const pending = useRef(null);
    const known = useRef(new Set());
    known.current = new Set((graph.data?.items ?? []).map((task) => task.id));
    useEffect(() => setChanges(new Map()), [graph.data]);
    useEffect(() => { // new children appear now and then
        const timer = setInterval(() => document.visibilityState === 'visible' && graph.reload(), 10000);
        return () => clearInterval(timer);
    }, [id]);
    useStream({}, {
        task(note) {
            if (!known.current.has(note.id))
                return;
            if (!pending.current) {
                pending.current = new Map();
                setTimeout(() => {
                    const notes = pending.current;
                    pending.current = null;
                    setChanges((old) => new Map([...old, ...notes]));
                }, 150);
            }
            pending.current.set(note.id, note);
        },
        gap: graph.reload,
    });
    const tasks = useMemo(() => (graph.data?.items ?? []).map((task) => {
        const note = changes.get(task.id);
        return note && note.version > task.version
            ? { ...task, status: note.status, progress: note.progress } : task;
    }), [graph.data, changes]);
    const title = t('workflow.title', { id: short(id, 40) });
    return html`<${Page} title=${title} lead=${tasks.length ? tn('workflow.tasks', tasks.length) : null}
        actions=${html`<${Button} op="GET /v1/tasks" onClick=${() => go('tasks', null, { workflow_id: id })}>${t(
        'workflow.list')}<//>`}>
        ${graph.error?.status === 404 ? html`<${Empty} title=${t('workflow.gone')}
            text=${t('workflow.goneText')} op="POST /v1/tasks" command="perdura enqueue load --depends-on ID"/>`
        : html`<${Problem} error=${graph.error} retry=${graph.reload}/>`}
        ${!graph.data && !graph.error && html`<${Loading}/>`}
        ${graph.data?.cut && html`<p class="problem">${t('workflow.cut')}</p>`}
        ${tasks.length > 0 && html`<${Legend} tasks=${tasks} status=${status} setStatus=${setStatus}
            find=${find} setFind=${setFind}/><${Graph} tasks=${tasks} status=${status} find=${find}/>`}<//>`;
}
