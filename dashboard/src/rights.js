// What the signed-in person may do: the scopes of GET /v1/whoami against the scope that each operation
// needs, which the build takes from openapi.json. What one may not do is not shown; what is really
// allowed is decided by the server.
import operations from 'perdura:operations';

export const SCOPES = ['tasks:read', 'payloads:read', 'tasks:enqueue', 'tasks:control', 'tasks:delete', 'work',
    'plans:read', 'plans:write', 'plans:run', 'queues:write', 'metrics:read', 'audit:read', 'access:write', 'admin'];
const VIEWER = ['tasks:read', 'plans:read', 'metrics:read'];
const READER = [...VIEWER, 'payloads:read'];
export const ROLES = {
    viewer: VIEWER,
    reader: READER,
    producer: ['tasks:enqueue', 'plans:run'],
    worker: ['work'],
    operator: [...READER, 'tasks:control', 'plans:run', 'queues:write'],
    editor: [...READER, 'plans:write', 'plans:run', 'queues:write'],
    admin: ['admin'],
};
const INCLUDED = { admin: SCOPES, 'payloads:read': ['tasks:read'] };

// Every page, by what it is for; `one` is the page of a single thing. Each principal may list the namespaces
// that are theirs, which is no page.
export const NEEDS = {
    '': { all: 'GET /v1/stats' },
    tasks: { all: 'GET /v1/tasks', one: 'GET /v1/tasks/{id}' },
    workflows: { all: 'GET /v1/tasks', one: 'GET /v1/workflows/{id}' },
    queues: { all: 'GET /v1/queues' },
    workers: { all: 'GET /v1/workers' },
    services: { all: 'GET /v1/services' },
    jobs: { all: 'GET /v1/jobs' },
    schedules: { all: 'GET /v1/schedules' },
    recovery: { all: 'GET /v1/recovery' },
    tokens: { all: 'GET /v1/tokens' },
    namespaces: { all: 'PATCH /v1/namespaces/{name}' },
    audit: { all: 'GET /v1/audit' },
    keys: { all: 'GET /v1/keys' },
};

let who = null; // the principal; null: not known yet
let has = new Set();

export function setPrincipal(principal) {
    who = principal;
    has = new Set((principal?.scopes ?? []).flatMap((scope) => [scope, ...INCLUDED[scope] ?? []]));
}

export const hasScope = (scope) => has.has(scope);
export const isGlobal = () => who?.namespace === '*';

// operation: 'POST /v1/tasks/{id}:cancel', as in openapi.json. What the API does not have is no right.
export function may(operation) {
    const [scope, kind] = operations[operation]?.split(' ') ?? [];
    if (!scope || !who || (kind === 'everywhere' && !isGlobal()))
        return false;
    return scope === 'any' || scope === 'none' || has.has(scope)
        || (kind === 'own' && has.has('tasks:enqueue')); // what the same principal made
}

const needOf = (operation) => (operations[operation] ?? '').replace(/ own$/, '').replace(/ everywhere$/, ' (*)');

// Of several, whether one of them is allowed.
export const mayAny = (...list) => list.some(may);

const patterns = Object.keys(operations).map((operation) => ({ operation,
    fits: new RegExp(`^${operation.replaceAll(/\{\w+\}/g, '[^/:]+')}$`) }))
    .sort((a, b) => a.operation.includes('{') - b.operation.includes('{'));

// The scope that a request lacks, '' = none; then it need not be sent.
export function missing(method, path) {
    const asked = `${method} ${path.split('?')[0]}`;
    const found = who && patterns.find((one) => one.fits.test(asked));
    return found && !may(found.operation) ? needOf(found.operation) : '';
}

export const mayOpen = (page, id = '') => may(NEEDS[page][id ? 'one' : 'all']);
export const scopeOfPage = (page, id) => needOf(NEEDS[page]?.[id ? 'one' : 'all']);

// Whether a link of this dashboard leads to a page that shows something. What is no page is let through:
// the page says that its address is wrong.
export function opens(href) {
    const [, page, id] = /^#\/([^/?]*)(?:\/([^?]*))?/.exec(href) ?? [];
    const isPage = page !== undefined && Object.hasOwn(NEEDS, page) && NEEDS[page][id ? 'one' : 'all'];
    return !isPage || mayOpen(page, id);
}

export const firstPage = () => Object.keys(NEEDS).find((page) => mayOpen(page));

// The role whose scopes these are, or null.
export function roleOf(scopes) {
    const key = (list) => [...list].sort().join(' ');
    return Object.keys(ROLES).find((role) => key(ROLES[role]) === key(scopes)) ?? null;
}
