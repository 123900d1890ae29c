// A value that can change and that components can follow; and a few of them that the whole page
// has.
import { useEffect, useState } from './html.js';

export function makeStore(value) {
    const followers = new Set();
    return {
        get: () => value,
        set(next) {
            if (next === value)
                return;
            value = next;
            followers.forEach((tell) => tell(next));
        },
        follow(tell) {
            followers.add(tell);
            return () => followers.delete(tell);
        },
    };
}

export function useStore(store) {
    const [value, setValue] = useState(store.get());
    useEffect(() => {
        setValue(() => store.get());
        return store.follow((next) => setValue(() => next));
    }, [store]);
    return value;
}

export const connection = makeStore({ lost: false, since: null, why: '' });
// Who is signed in: the answer of GET /v1/whoami; null while that is not known (isOut: it asks for a credential).
export const session = makeStore({ who: null, isOut: false, reason: '' });
export const namespaceChanges = makeStore(0); // made or deleted on this page
export const notices = makeStore([]); // short messages at the lower edge
export const theme = makeStore(localStorage.getItem('perdura.theme') ?? '');

let noticeId = 0;
export function notify(text, kind = 'good', along = false) {
    const notice = { id: ++noticeId, text, kind, along };
    notices.set([...notices.get(), notice].slice(-4));
    setTimeout(() => notices.set(notices.get().filter((one) => one.id !== notice.id)),
        kind === 'bad' ? 12000 : 5000);
}

// What was said on a page goes with it; what led to the next one comes along, once.
export function leaveNotices() {
    notices.set(notices.get().filter((one) => one.along).map((one) => ({ ...one, along: false })));
}

// '' follows the system.
export function chooseTheme(name) {
    if (name) {
        localStorage.setItem('perdura.theme', name);
        document.documentElement.dataset.theme = name;
    } else {
        localStorage.removeItem('perdura.theme');
        delete document.documentElement.dataset.theme;
    }
    theme.set(name);
}
