// Where we are: the part of the address behind #, such as #/tasks?status=failed.
import { makeStore } from './store.js';

function parse() {
    const [path, search] = (location.hash.replace(/^#/, '') || '/').split('?');
    const parts = path.split('/').filter(Boolean).map((part) => {
        try {
            return decodeURIComponent(part);
        } catch {
            return part;
        }
    });
    return { page: parts[0] ?? '', id: parts[1] ?? null, known: parts.length < 3,
        query: Object.fromEntries(new URLSearchParams(search ?? '')) };
}

export const route = makeStore(parse());
let moves = 0;
addEventListener('hashchange', () => {
    moves++;
    route.set(parse());
});

// On the first page the focus stays at the start, where the skip link is; later it goes to the title.
export const hasMoved = () => moves > 0;

export function link(page, id, values = {}) {
    const pairs = Object.entries(values).filter(([, value]) => value !== '' && value != null);
    return `#/${page}${id ? `/${encodeURIComponent(id)}` : ''}`
        + (pairs.length ? `?${new URLSearchParams(pairs)}` : '');
}

export function go(page, id, values) {
    location.hash = link(page, id, values);
}

// The same page with another query; no new entry in the history while the user types.
export function replaceQuery(values) {
    const now = route.get();
    history.replaceState(null, '', link(now.page, now.id, values));
    route.set(parse());
}
