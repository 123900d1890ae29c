/* What both stores ask before they go on from lines or remove them: were they written by a server
 * that had the key? Writer's thread. */
#include "store/log_store.h"

static void doubt(struct store *store, const struct uuid *execution_id, const char *what)
{
    store->log_doubt = (struct log_doubt){what, *execution_id};
}

bool log_may_follow(struct store *store, const struct log_last *last, const struct uuid *task_id)
{
    bool noted = last->noted && last->note.mac[0] != '\0';

    if (!store->log_mac || last->seq == 0)
        return true;
    if (logmac_trusts(store->log_mac, last) &&
        (!noted || (last->note.closed.len == 0 && uuid_eq(&last->note.task_id, task_id))))
        return true;
    doubt(store, &last->execution_id, "its new lines are not signed");
    return false;
}

int log_checked_add(struct store *store, const struct uuid *execution_id)
{
    struct log_checked *checked = store->log_checked;
    struct str key;

    if (!checked)
        return 0;
    key = arena_str(checked->arena, str_span((const char *)execution_id->bytes, 16));
    return key.data ? map_put(&checked->by_id, key, (void *)key.data) : -ERR_MEMORY;
}

bool log_is_checked(const struct store *store, const struct uuid *execution_id)
{
    return !store->log_checked ||
           map_get(&store->log_checked->by_id, str_span((const char *)execution_id->bytes, 16));
}

/* Without memory they stay, too. */
bool log_may_go(struct store *store, const struct log_last *last, int64_t before_us)
{
    if (store->log_mac && !logmac_trusts(store->log_mac, last)) {
        doubt(store, &last->execution_id, "retention leaves its lines");
        return false;
    }
    if (store->log_mac && last->logged_at_us >= before_us)
        return false;
    return log_checked_add(store, &last->execution_id) == 0;
}

int64_t log_note_lines(struct store *store, const struct log_note *note)
{
    if (note->part.lines <= 0 || note->part.lines > note->part.head.seq)
        return 0;
    if (!store->log_mac || logmac_good(store->log_mac, note))
        return note->part.lines;
    doubt(store, &note->part.head.execution_id, "a note of its lines does not count");
    return 0;
}

int log_note_seal(struct store *store, struct log_note *note)
{
    note->mac[0] = '\0';
    if (!store->log_mac)
        return 0;
    return logmac_make(store->log_mac, note, note->mac) == -ERR_MEMORY ? -ERR_MEMORY : 0;
}
