// The only way to the server: requests to /v1 with the token, errors as sentences, who is signed in,
// and the hooks that load and reload. The token is kept for this tab only (sessionStorage), or in this
// browser (localStorage) where that was asked for.
import { useCallback, useEffect, useRef, useState } from './html.js';
import { missing, setPrincipal } from './rights.js';
import { connection, notify, session } from './store.js';
import { t } from './text.js';

const TOKEN = 'perdura.token';
const NAMESPACE = 'perdura.namespace';
const WHO = '/v1/whoami';
const AGAIN_MS = 5000; // who one is, is asked again at most so often
const GIVE_UP_MS = 70000; // longer than any long-poll

export class ApiError extends Error {
    constructor(status, error) {
        super(error.message ?? t('error.status', { status }));
        this.status = status;
        this.code = error.code ?? '';
        this.field = error.field ?? null;
    }
}

const kept = () => sessionStorage.getItem(TOKEN) ?? localStorage.getItem(TOKEN);

export function authorization() {
    const token = kept();
    const within = namespace();
    return { ...(token ? { Authorization: `Bearer ${token}` } : {}),
        ...(within ? { 'Perdura-Namespace': within } : {}) };
}

// What every request of this tab is about, the stream too; '' = what the server takes by itself.
export const namespace = () => sessionStorage.getItem(NAMESPACE) ?? '';

export function keepNamespace(name) {
    if (name)
        sessionStorage.setItem(NAMESPACE, name);
    else
        sessionStorage.removeItem(NAMESPACE);
}

export function keepToken(token, stays = false) {
    (stays ? localStorage : sessionStorage).setItem(TOKEN, token);
    if (stays)
        sessionStorage.removeItem(TOKEN);
}

function forgetToken() {
    sessionStorage.removeItem(TOKEN);
    localStorage.removeItem(TOKEN);
}

export const hasToken = () => kept() !== null;
export const isKeptHere = () => sessionStorage.getItem(TOKEN) === null && localStorage.getItem(TOKEN) !== null;

function enter(who) {
    setPrincipal(who);
    session.set({ who, isOut: false, reason: '' });
}

// The session ends here, and why. sent: the credential that was not taken; an answer to an
// older one does not count.
export function refuse(sent, reason) {
    const { who, isOut } = session.get();
    if (sent.Authorization !== authorization().Authorization || (isOut && !reason))
        return;
    forgetToken();
    setPrincipal(null);
    session.set({ who: null, isOut: true, wasIn: Boolean(who), reason: who?.kind === 'proxy' ? t('login.proxyEnded') : reason });
}

// Without a credential there is nothing wrong with it.
export const refuse401 = (sent, message = '') => refuse(sent, sent.Authorization ? message : '');

let askedAt = 0;
let asking = null; // { as, answer }: what is under way, and with which credential

async function ask(sent) {
    try {
        return enter(await get(WHO));
    } catch (error) {
        if (namespace() && [403, 404].includes(error.status)) { // another person's choice
            keepNamespace('');
            return askWho();
        }
        if (error.status === 403) // known, and without any right
            refuse(sent, error.message);
        throw error;
    }
}

// Asks who one is; throws where that cannot be known. 401 ends at the page where one signs in.
export function askWho() {
    const sent = authorization();
    const as = JSON.stringify(sent);
    if (asking?.as !== as) {
        const mine = { as };
        mine.answer = ask(sent).finally(() => { asking = asking === mine ? null : asking; });
        asking = mine;
        askedAt = Date.now();
    }
    return asking.answer;
}

// Rights may have changed: of a group, of a certificate.
function askAgain() {
    if (Date.now() - askedAt > AGAIN_MS)
        askWho().catch(() => {});
}

export async function signIn(token, stays) {
    keepToken(token, stays);
    try {
        await askWho();
    } catch (error) {
        forgetToken();
        throw error;
    }
}

function beginAgain() {
    keepNamespace('');
    setPrincipal(null);
    session.set({ who: null, isOut: false, reason: '' });
    return askWho().catch(() => {});
}

// Who needs no token is in again at once: on an open server, behind a proxy.
export function signOut() {
    forgetToken();
    return beginAgain();
}

// Another tab signed in or out with the token that is kept on this computer.
addEventListener('storage', (event) => {
    if (event.key === TOKEN && sessionStorage.getItem(TOKEN) === null)
        beginAgain();
});

// A number that a double cannot hold is kept as it was written; the viewer shows that.
export class ExactNumber {
    constructor(source) {
        this.source = source;
    }
    toJSON() {
        return Number(this.source);
    }
}

function keepExact(key, value, context) {
    const source = context?.source;
    return typeof value === 'number' && source !== undefined && String(value) !== source
        && !sameNumber(value, source) ? new ExactNumber(source) : value;
}

// 1.0 and 1e3 are other ways to write a double, 0.1 with thirty digits is not.
function sameNumber(value, source) {
    const digits = (text) => text.replace(/e.*$/i, '').replace(/[-.]/g, '').replace(/^0+|0+$/g, '');
    return digits(source) === digits(String(value));
}

export function noteConnection(lost, why = '') {
    const now = connection.get();
    if (lost !== now.lost)
        connection.set({ lost, since: lost ? new Date() : null, why });
}

export async function request(method, path, body, options = {}) {
    const lacking = missing(method, path);
    if (lacking)
        throw new ApiError(403, { message: t('access.needs', { scope: lacking }) });
    const sent = authorization();
    let reply;
    try {
        reply = await fetch(path, {
            method,
            headers: { ...sent,
                ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) },
            body: body === undefined ? undefined : JSON.stringify(body),
            signal: options.signal ? AbortSignal.any([options.signal, AbortSignal.timeout(GIVE_UP_MS)])
                : AbortSignal.timeout(GIVE_UP_MS),
            cache: 'no-store',
        });
    } catch (error) {
        if (error.name === 'AbortError')
            throw error;
        noteConnection(true, error.message);
        throw new ApiError(0, { message: t('error.unreachable') });
    }
    noteConnection(false);
    const text = await reply.text();
    let json = null;
    try {
        json = text ? JSON.parse(text, keepExact) : null;
    } catch {
        if (reply.status === 401)
            refuse401(sent, t('error.notJson', { status: 401 }));
        throw new ApiError(reply.status, { message: t('error.notJson', { status: reply.status }) });
    }
    if (reply.status === 401)
        refuse401(sent, json?.error?.message);
    if (reply.status === 403 && path !== WHO)
        askAgain();
    if (!reply.ok)
        throw new ApiError(reply.status, json?.error ?? {});
    return json;
}

export const get = (path, options) => request('GET', path, undefined, options);
export const post = (path, body = {}) => request('POST', path, body);
export const patch = (path, body) => request('PATCH', path, body);
export const remove = (path) => request('DELETE', path);

export function query(values) {
    const pairs = Object.entries(values)
        .filter(([, value]) => value !== '' && value !== null && value !== undefined);
    return pairs.length ? `?${new URLSearchParams(pairs)}` : '';
}

export const name = encodeURIComponent;

// All pages of a list, up to a bound.
export async function getAll(path, most = 1000) {
    const items = [];
    let cursor = null;
    do {
        const joint = path.includes('?') ? '&' : '?';
        const page = await get(`${path}${joint}limit=${Math.min(most, 1000)}`
            + (cursor ? `&cursor=${name(cursor)}` : ''));
        items.push(...page.items);
        cursor = page.next_cursor;
    } while (cursor && items.length < most);
    return items;
}

// Loads now, when `inputs` change, and every so many ms while the page is seen. What was loaded
// stays shown until the next is there; `fresh` is false while that is of other inputs. load gets a
// signal that is aborted when its answer is no longer needed.
export function useLoad(load, inputs = [], every = 0) {
    const [state, setState] = useState({ data: null, error: null, key: null });
    const control = useRef(null);
    const key = JSON.stringify(inputs);
    const reload = useCallback(async () => {
        control.current?.abort();
        const mine = new AbortController();
        control.current = mine;
        try {
            const data = await load(mine.signal);
            if (mine === control.current)
                setState({ data, error: null, key });
        } catch (error) {
            if (mine === control.current && error.name !== 'AbortError')
                setState((old) => ({ data: old.key === key ? old.data : null, error, key }));
        }
        if (mine === control.current)
            control.current = null;
    }, [key]);
    useEffect(() => {
        reload();
        const again = () => document.visibilityState === 'visible' && !control.current && reload();
        const timer = every ? setInterval(again, every) : 0;
        document.addEventListener('visibilitychange', again);
        return () => {
            control.current?.abort();
            control.current = null;
            clearInterval(timer);
            document.removeEventListener('visibilitychange', again);
        };
    }, [reload, every]);
    return { data: state.data, error: state.error, fresh: state.key === key, reload };
}

// Does something for a click: says what came of it (on the next page, too, with `along`), and never
// throws.
export async function attempt(action, done, along = false) {
    try {
        const result = await action();
        if (done)
            notify(typeof done === 'function' ? done(result) : done, 'good', along);
        return result ?? true;
    } catch (error) {
        notify(error.message, 'bad');
        return null;
    }
}
