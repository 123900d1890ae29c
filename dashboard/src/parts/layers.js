// A layered layout for graphs of tasks: a task that waits for others stands below them. Longest
// paths give the layers, a few sweeps by the middle of the neighbours bring few crossings, wide
// layers are broken into rows so that a fan of hundreds stays readable. An edge past other rows
// goes through the gaps between their nodes, never behind one. Pure; linear but for the sorting.
export const NODE_WIDTH = 190;
export const NODE_HEIGHT = 48;
const GAP_X = 22;
const GAP_Y = 54;
const ROW_GAP = 16;
const ROW_MOST = 24; // nodes side by side
const SWEEPS = 6;

function edgesOf(tasks) {
    const known = new Set(tasks.map((task) => task.id));
    const edges = [];
    for (const task of tasks) {
        for (const one of task.depends_on)
            if (known.has(one.task))
                edges.push({ from: one.task, to: task.id, kind: one.type });
        if (task.parent_id && known.has(task.parent_id))
            edges.push({ from: task.parent_id, to: task.id, kind: 'child' });
    }
    return edges;
}

// The longest way from a task without parents; what is in a cycle (which the server refuses) stays 0.
function depths(tasks, edges) {
    const depth = new Map(tasks.map((task) => [task.id, 0]));
    const open = new Map(tasks.map((task) => [task.id, 0]));
    const below = new Map(tasks.map((task) => [task.id, []]));
    for (const edge of edges) {
        open.set(edge.to, open.get(edge.to) + 1);
        below.get(edge.from).push(edge.to);
    }
    const ready = tasks.filter((task) => open.get(task.id) === 0).map((task) => task.id);
    while (ready.length) {
        const id = ready.pop();
        for (const next of below.get(id)) {
            depth.set(next, Math.max(depth.get(next), depth.get(id) + 1));
            open.set(next, open.get(next) - 1);
            if (open.get(next) === 0)
                ready.push(next);
        }
    }
    return depth;
}

function order(rows, edges) {
    const up = new Map();
    const down = new Map();
    const put = (map, key, value) => (map.has(key) ? map.get(key).push(value) : map.set(key, [value]));
    for (const edge of edges) {
        put(up, edge.to, edge.from);
        put(down, edge.from, edge.to);
    }
    const place = new Map();
    const number = (row) => row.forEach((id, at) => place.set(id, (at + 0.5) / row.length));
    rows.forEach(number);
    for (let sweep = 0; sweep < SWEEPS; sweep++) {
        const near = sweep % 2 === 0 ? up : down;
        for (const row of sweep % 2 === 0 ? rows : [...rows].reverse()) {
            const middle = new Map(row.map((id) => {
                const others = near.get(id) ?? [];
                return [id, others.length ? others.reduce((sum, one) => sum + place.get(one), 0)
                    / others.length : place.get(id)];
            }));
            row.sort((a, b) => middle.get(a) - middle.get(b));
            number(row);
        }
    }
}

// Everything that must end before a task, and everything that waits for it, with the task itself.
export function related(edges, id) {
    const found = new Set([id]);
    for (const [near, far] of [['from', 'to'], ['to', 'from']]) {
        const below = new Map();
        edges.forEach((edge) => below.set(edge[near], [...(below.get(edge[near]) ?? []), edge[far]]));
        const open = [id];
        const seen = new Set(open);
        while (open.length)
            for (const next of below.get(open.pop()) ?? [])
                if (!seen.has(next)) {
                    seen.add(next);
                    found.add(next);
                    open.push(next);
                }
    }
    return found;
}

// Where an edge passes the rows between its ends: the middle of the gap that is next to its way.
// Edges in one gap are a few pixels apart.
function passes(from, to, lines, width) {
    const gaps = [];
    let x = from.x + NODE_WIDTH / 2;
    for (let row = from.row + 1; row < to.row; row++) {
        const line = lines[row];
        const step = NODE_WIDTH + GAP_X;
        const straight = x + (to.x + NODE_WIDTH / 2 - x) / (to.row - row + 1);
        const at = Math.max(0, Math.min(line.ids.length, Math.round((straight - line.x + GAP_X / 2) / step)));
        const outside = (at === 0 && straight < line.x - GAP_X / 2)
            || (at === line.ids.length && straight > line.x + line.ids.length * step - GAP_X / 2);
        const used = line.used.get(at) ?? 0;
        line.used.set(at, used + 1);
        const beside = ((used + 1) >> 1) * (used % 2 ? 4 : -4) % (GAP_X / 2 - 2);
        x = outside ? Math.max(-GAP_X, Math.min(width + GAP_X, straight)) : line.x + at * step - GAP_X / 2 + beside;
        gaps.push({ x, top: line.y, bottom: line.y + NODE_HEIGHT });
    }
    return gaps;
}

// nodes: { id, x, y }, edges with both ends and the gaps they pass, the size, and who is next to whom for the keys.
export function layers(tasks) {
    const edges = edgesOf(tasks);
    const depth = depths(tasks, edges);
    const rows = [];
    for (const task of [...tasks].sort((a, b) => (a.id < b.id ? -1 : 1))) // in order of their making
        (rows[depth.get(task.id)] ??= []).push(task.id);
    order(rows, edges);
    const lines = rows.flatMap((row) => {
        const count = Math.ceil(row.length / ROW_MOST);
        const size = Math.ceil(row.length / count);
        return Array.from({ length: count }, (_, at) => ({ ids: row.slice(at * size, (at + 1) * size),
            last: at === count - 1 }));
    });
    const widest = Math.max(1, ...lines.map((line) => line.ids.length));
    const width = widest * (NODE_WIDTH + GAP_X) - GAP_X;
    const nodes = new Map();
    let y = 0;
    lines.forEach((line, row) => {
        const own = line.ids.length * (NODE_WIDTH + GAP_X) - GAP_X;
        Object.assign(line, { x: (width - own) / 2, y, used: new Map() });
        line.ids.forEach((id, at) => nodes.set(id, { id, row, at,
            x: line.x + at * (NODE_WIDTH + GAP_X), y }));
        y += NODE_HEIGHT + (line.last ? GAP_Y : ROW_GAP);
    });
    function nextTo(id, direction) {
        const here = nodes.get(id);
        if (!here)
            return [...nodes.values()][0];
        if (direction === 'left' || direction === 'right')
            return nodes.get(lines[here.row].ids[here.at + (direction === 'left' ? -1 : 1)]);
        const other = lines[here.row + (direction === 'up' ? -1 : 1)]?.ids ?? [];
        return other.map((one) => nodes.get(one))
            .sort((a, b) => Math.abs(a.x - here.x) - Math.abs(b.x - here.x))[0];
    }
    return {
        nodes: [...nodes.values()],
        edges: edges.map((edge) => {
            const from = nodes.get(edge.from);
            const to = nodes.get(edge.to);
            return { id: `${edge.from}${edge.to}${edge.kind}`, kind: edge.kind, from: edge.from, to: edge.to,
                x1: from.x + NODE_WIDTH / 2, y1: from.y + NODE_HEIGHT, x2: to.x + NODE_WIDTH / 2, y2: to.y,
                gaps: passes(from, to, lines, width) };
        }),
        width,
        height: Math.max(0, y - GAP_Y),
        nextTo,
    };
}
