// What somebody types into the search box, as filters of GET /v1/tasks: "status:failed queue:mail
// report:daily" is a status, a queue and a type; a whole id is that task.
export const FILTERS = ['status', 'type', 'queue', 'tag', 'user_id', 'external_id', 'context_key',
    'job_id', 'schedule_id', 'workflow_id', 'parent_id', 'correlation_id', 'created_after',
    'created_before'];
const SHORT = { user: 'user_id', external: 'external_id', context: 'context_key', job: 'job_id',
    schedule: 'schedule_id', workflow: 'workflow_id', parent: 'parent_id',
    correlation: 'correlation_id', after: 'created_after', before: 'created_before' };
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export function parseSearch(text) {
    const words = text.trim().match(/[^\s:"]+:"[^"]*"|"[^"]*"|\S+/g) ?? [];
    if (words.length === 1 && ID.test(words[0]))
        return { id: words[0].toLowerCase(), filters: {} };
    const filters = {};
    for (const word of words) {
        const [, key, value] = /^(\w+):(.+)$/.exec(word) ?? [];
        const filter = SHORT[key] ?? key;
        if (FILTERS.includes(filter))
            filters[filter] = value.replace(/^"|"$/g, '');
        else
            filters.type = word.replace(/^"|"$/g, '');
    }
    return { id: null, filters };
}

export function writeSearch(filters) {
    return FILTERS.filter((key) => filters[key]).map((key) => {
        const value = filters[key];
        return key === 'type' && !/[\s"]/.test(value) ? value
            : `${key}:${/\s/.test(value) ? `"${value}"` : value}`;
    }).join(' ');
}
