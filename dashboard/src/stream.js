// Server-sent events with the token (which EventSource cannot send): connects again by itself, lets go
// while the page is hidden (a browser has six connections per server), asks for what came since the last
// event it saw, and says when something may have been missed.
import { useEffect, useRef } from './html.js';
import { authorization, noteConnection, query, refuse401 } from './api.js';
import { may } from './rights.js';

const AGAIN_MS = [500, 1000, 2000, 5000, 10000];
const SILENT_MS = 40000; // the server sends something every 15 s

// handlers: { task(data), stats(data), gap() }; gap is also called after a reconnect if it is
// unknown what was missed: when no event had an id yet.
export function openStream(parameters, handlers) {
    let control = null;
    let failures = 0;
    let timer = 0;
    let closed = false;
    let last = ''; // the id of the last event, which may be of another connection

    function dispatch(block) {
        let event = 'message';
        let data = '';
        for (const line of block.split('\n')) {
            const [, field, value] = /^(\w+): ?(.*)$/.exec(line) ?? [];
            if (field === 'event')
                event = value;
            else if (field === 'data')
                data += value;
            else if (field === 'id')
                last = value;
        }
        if (data && handlers[event])
            handlers[event](JSON.parse(data));
    }

    async function read(reply) {
        const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
        let text = '';
        for (;;) {
            const silent = setTimeout(() => control?.abort(), SILENT_MS);
            const { value, done } = await reader.read().finally(() => clearTimeout(silent));
            if (done)
                return;
            text += value;
            const blocks = text.split('\n\n');
            text = blocks.pop();
            blocks.forEach(dispatch);
        }
    }

    async function connect() {
        control = new AbortController();
        const mine = control;
        const sent = authorization();
        try {
            const reply = await fetch(`/v1/stream${query(parameters)}`,
                { headers: { ...sent, ...(last ? { 'Last-Event-ID': last } : {}) },
                    signal: mine.signal, cache: 'no-store' });
            if (reply.status === 401) {
                refuse401(sent, (await reply.json().catch(() => null))?.error?.message);
                return;
            }
            if (reply.ok) {
                noteConnection(false);
                if (failures && (!last || parameters.stats === 'only')) // figures are not sent again
                    handlers.gap?.();
                failures = 0;
                await read(reply);
            }
        } catch (error) {
            if (!closed && mine === control && document.visibilityState === 'visible')
                noteConnection(true, error.message);
        }
        if (!closed && mine === control && document.visibilityState === 'visible')
            timer = setTimeout(connect, AGAIN_MS[Math.min(failures++, AGAIN_MS.length - 1)]);
    }

    function letGo() {
        clearTimeout(timer);
        const old = control;
        control = null;
        old?.abort();
    }

    function seen() {
        if (document.visibilityState === 'visible') {
            if (!control) {
                failures = 1; // whatever happened meanwhile was missed
                connect();
            }
        } else {
            letGo();
        }
    }

    document.addEventListener('visibilitychange', seen);
    if (document.visibilityState === 'visible')
        connect();
    return () => {
        closed = true;
        document.removeEventListener('visibilitychange', seen);
        letGo();
    };
}

// One stream as long as the component lives; the newest handlers are called.
export function useStream(parameters, handlers) {
    const latest = useRef(handlers);
    latest.current = handlers;
    useEffect(() => (may('GET /v1/stream') ? openStream : () => {})(parameters, {
        task: (data) => latest.current.task?.(data),
        stats: (data) => latest.current.stats?.(data),
        gap: () => latest.current.gap?.(),
    }), [JSON.stringify(parameters)]);
}
