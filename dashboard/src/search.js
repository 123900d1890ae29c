// What the user types into the search box, as filters of GET /v1/tasks: "status:failed queue:mail
// daily report" is a status, a queue and two words that must both occur; a whole id is that task.
export const FILTERS = ['q', 'status', 'type', 'queue', 'tag', 'user_id', 'external_id', 'context_key',
    'job_id', 'schedule_id', 'workflow_id', 'parent_id', 'correlation_id', 'created_after',
    'created_before'];
const SHORT = { user: 'user_id', external: 'external_id', context: 'context_key', job: 'job_id',
    schedule: 'schedule_id', workflow: 'workflow_id', parent: 'parent_id',
    correlation: 'correlation_id', after: 'created_after', before: 'created_before' };
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const quoted = (text) => (/\s/.test(text) ? `"${text}"` : text);

// Nothing that was typed is dropped: a second value for the same filter is looked for as a word.
export function parseSearch(text) {
    const words = text.trim().match(/[^\s:"]+:"[^"]*"|"[^"]*"|\S+/g) ?? [];
    if (words.length === 1 && ID.test(words[0]))
        return { id: words[0].toLowerCase(), filters: {} };
    const filters = {};
    const free = [];
    for (const word of words) {
        const [, key, value] = /^(\w+):(.+)$/.exec(word) ?? [];
        const filter = Object.hasOwn(SHORT, key) ? SHORT[key] : key;
        const plain = (value ?? word).replace(/^"|"$/g, '');
        if (FILTERS.includes(filter) && filter !== 'q' && !filters[filter])
            filters[filter] = plain;
        else if (plain)
            free.push(quoted(FILTERS.includes(filter) ? plain : word.replaceAll('"', '')));
    }
    return { id: null, filters: free.length ? { ...filters, q: free.join(' ') } : filters };
}

export function writeSearch(filters) {
    return FILTERS.filter((key) => filters[key])
        .map((key) => (key === 'q' ? filters.q : `${key}:${quoted(filters[key])}`)).join(' ');
}
