// A value somebody can change and components can follow; and a few of them that the whole page has.
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
export const tokenWanted = makeStore(false);
export const notices = makeStore([]); // short messages at the lower edge
export const theme = makeStore(localStorage.getItem('perdura.theme') ?? '');

const NOTICE_MOMENT_MS = 500;
let noticeId = 0;
export function notify(text, kind = 'good') {
    const notice = { id: ++noticeId, text, kind, at: Date.now() };
    notices.set([...notices.get(), notice].slice(-4));
    setTimeout(() => notices.set(notices.get().filter((one) => one !== notice)),
        kind === 'bad' ? 12000 : 5000);
}

// What was said of a page goes with it; what was said a moment ago is of the step that led on.
export function leaveNotices() {
    notices.set(notices.get().filter((one) => Date.now() - one.at < NOTICE_MOMENT_MS));
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
