// The log of a task, all attempts, with its end followed while it runs. Lines are text and nothing
// else. The newest few thousand are kept. What is looked for is asked for when the typing has paused; a
// question that is no longer wanted is taken back, and the server continues where its time was over.
import { html, useEffect, useRef, useState } from '../html.js';
import { get, query } from '../api.js';
import { clock, fullTime, number, t } from '../text.js';
import { Empty, Problem, Select } from './controls.js';
import { isSealed, NotShown, shownText } from './sealed.js';

const LINES_KEPT = 3000;
const AGAIN_MS = 1000;
const REST = 10; // a log that takes long to read is read again after so many times as long
const TYPED_MS = 300; // after so long without a key the text is looked for
const LEVELS = ['DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL'];

function Line({ line }) {
    const context = isSealed(line.context) ? '' : line.context && Object.keys(line.context).length ? JSON.stringify(line.context) : '';
    return html`<li class=${`log ${line.log_level}`}><time datetime=${line.logged_at}
        title=${fullTime(line.logged_at)}>${clock(line.logged_at)}</time>
        <b>${line.log_level}</b><span>${line.redacted ? t('redacted') : shownText(line.message)}${context
    && html` <code>${context}</code>`}</span></li>`;
}

// Reads on behind the last line until there is none, then again after a while.
function useLines(base, filter, ended) {
    const [state, setState] = useState({ lines: [], cut: 0, error: null, loaded: false });
    useEffect(() => {
        const control = new AbortController();
        let mine = true;
        let timer = 0;
        let after = '';
        const known = new Set();
        async function read() {
            let cursor = null;
            const begin = Date.now();
            try {
                do {
                    const page = await get(`${base}/logs${query({ limit: 1000, ...filter, after,
                        cursor })}`, { signal: control.signal });
                    if (!mine)
                        return;
                    const fresh = page.items.filter((line) => !known.has(line.id));
                    fresh.forEach((line) => known.add(line.id));
                    setState((old) => {
                        const lines = fresh.length ? [...old.lines, ...fresh] : old.lines;
                        const over = Math.max(0, lines.length - LINES_KEPT);
                        return { lines: over ? lines.slice(over) : lines, cut: old.cut + over,
                            error: null, loaded: !page.next_cursor || old.loaded };
                    });
                    cursor = page.next_cursor;
                    const last = page.items.at(-1);
                    if (last && !cursor) // a second of overlap: lines of other attempts may be late
                        after = new Date(Date.parse(last.logged_at) - 1000).toISOString();
                } while (cursor);
            } catch (error) {
                if (mine)
                    setState((old) => ({ ...old, error, loaded: true }));
            }
            if (mine && !ended)
                timer = setTimeout(read, Math.max(AGAIN_MS, REST * (Date.now() - begin)));
        }
        setState({ lines: [], cut: 0, error: null, loaded: false });
        read();
        return () => {
            mine = false;
            control.abort();
            clearTimeout(timer);
        };
    }, [base, JSON.stringify(filter), ended]);
    return state;
}

// The value once it has stayed the same for a while.
function useSettled(value) {
    const [settled, setSettled] = useState(value);
    useEffect(() => {
        const timer = setTimeout(() => setSettled(value), TYPED_MS);
        return () => clearTimeout(timer);
    }, [value]);
    return settled;
}

// redacted: the reader may not see the texts, and so may not look for them either.
export function Logs({ base, ended, redacted }) {
    const [level, setLevel] = useState('DEBUG');
    const [text, setText] = useState('');
    const q = useSettled(text);
    const [follow, setFollow] = useState(true);
    const box = useRef(null);
    const { lines, cut, error, loaded } = useLines(base, { level, q }, ended);
    useEffect(() => {
        if (follow && box.current)
            box.current.scrollTop = box.current.scrollHeight;
    }, [lines, follow]);
    function scrolled() {
        const at = box.current;
        setFollow(at.scrollHeight - at.scrollTop - at.clientHeight < 24);
    }
    return html`<div class="card"><div class="filters"><label><span>${t('logs.level')}</span><${Select}
        value=${level} onChange=${setLevel} options=${LEVELS.map((one) => [one, one])}/></label>
        ${redacted ? html`<div class="grow"><${NotShown}/></div>` : html`<label class="grow"><span>${t(
        'logs.find')}</span><input type="search" value=${text}
            onInput=${(event) => setText(event.target.value)}/></label>`}
        <label class="toggle"><input type="checkbox" checked=${follow}
            onChange=${(event) => setFollow(event.target.checked)}/> ${t('logs.follow')}</label></div>
        <${Problem} error=${error}/>
        ${!loaded && html`<p class="faint" role="status">${t('logs.reading')}</p>`}
        ${loaded && lines.length === 0 && !error ? html`<${Empty} title=${t('logs.empty')}
            text=${t('logs.emptyText')}/>` : html`<ol class="logs" ref=${box} onScroll=${scrolled}
            tabindex="0" aria-label=${t('task.logs')}>${cut > 0 && html`<li class="faint">${t('logs.cut',
        { n: number(cut) })}</li>`}${lines.map((line) => html`<${Line} key=${line.id}
            line=${line}/>`)}</ol>`}</div>`;
}
