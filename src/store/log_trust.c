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
    if (logmac_trusts(store->log_mac, store->log_since_us, last) &&
        (!noted || (last->note.closed.len == 0 && uuid_eq(&last->note.task_id, task_id))))
        return true;
    doubt(store, &last->execution_id, "its new lines are not signed");
    return false;
}

bool log_may_go(struct store *store, const struct log_last *last, int64_t before_us)
{
    if (!store->log_mac)
        return true;
    if (!logmac_trusts(store->log_mac, store->log_since_us, last)) {
        doubt(store, &last->execution_id, "retention leaves its lines");
        return false;
    }
    return last->logged_at_us < before_us;
}

int log_note_seal(struct store *store, struct log_note *note)
{
    note->mac[0] = '\0';
    if (!store->log_mac)
        return 0;
    return logmac_make(store->log_mac, note, note->mac) == -ERR_MEMORY ? -ERR_MEMORY : 0;
}
