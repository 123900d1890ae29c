/* What both stores ask before they continue a chain or remove lines: were the lines written by a
 * server that had the key? Writer's thread. */
#include "store/log_memory.h"
#include "store/log_store.h"

static void doubt(struct store *store, const struct uuid *execution_id, const char *what)
{
    store->log_doubt = (struct log_doubt){what, *execution_id};
}

bool log_is_newest(const struct store *store, const struct log_last *last)
{
    return !last->lost &&
           (!store->log_memory || log_memory_fits(store->log_memory, store->log_seen, last));
}

int log_written_add(struct store *store, const struct log_head *head)
{
    char hex[HASH_HEX_BYTES + 1];

    if (!store->log_memory || !store->log_written || !store->log_mac)
        return 0;
    hash_hex(head->hash, sizeof head->hash, hex);
    return log_cuts_add(store->log_written, &head->execution_id, head->seq, str_of(hex), 0, 0);
}

/* The lines are stored all the same, and nothing proves them: without a record of that a client
 * could remove them again unseen. Once for each execution while the server runs. */
static int note_refused(struct store *store, const struct log_last *last)
{
    if (!store->log_refused || log_memory_refused(store->log_memory, &last->execution_id))
        return 0;
    return log_cuts_add(store->log_refused, &last->execution_id, last->seq > 0 ? last->seq : 0,
                        last->chain_hash, 0, 0);
}

/* Retention goes by the type: one that changes within a run is an attacker's. */
static bool may_follow(const struct store *store, const struct log_last *last,
                       const struct log_entry *entry)
{
    bool noted = last->noted && last->note.mac[0] != '\0';

    if (!log_is_newest(store, last))
        return false;
    return last->seq == 0 ||
           (last->seq > 0 && logmac_trusts(store->log_mac, last) &&
            (!noted || (last->note.closed.len == 0 &&
                        uuid_eq(&last->note.task_id, &entry->task_id) &&
                        str_eq(last->note.task_type, entry->task_type))));
}

int log_may_follow(struct store *store, const struct log_last *last, const struct log_entry *entry,
                   bool *may)
{
    *may = !store->log_mac || may_follow(store, last, entry);
    if (*may)
        return 0;
    doubt(store, &last->execution_id, "its new lines are not signed");
    return note_refused(store, last);
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

int log_checked_base(struct store *store, const struct log_head *end, int64_t base)
{
    struct log_checked *checked = store->log_checked;
    struct log_base *entry = checked ? arena_alloc(checked->arena, sizeof *entry) : NULL;

    if (!checked)
        return 0;
    if (!entry)
        return -ERR_MEMORY;
    *entry = (struct log_base){*end, base};
    return map_put(&checked->bases,
                   str_span((const char *)entry->end.execution_id.bytes, sizeof(struct uuid)),
                   entry);
}

const struct log_base *log_base_of(const struct store *store, const struct uuid *execution_id)
{
    if (!store->log_checked)
        return NULL;
    return map_get(&store->log_checked->bases,
                   str_span((const char *)execution_id->bytes, sizeof *execution_id));
}

bool log_is_checked(const struct store *store, const struct uuid *execution_id)
{
    return !store->log_checked ||
           map_get(&store->log_checked->by_id, str_span((const char *)execution_id->bytes, 16));
}

/* When memory runs out, the lines stay. */
bool log_may_go(struct store *store, const struct log_last *last, int64_t before_us)
{
    if (store->log_mac && !(logmac_trusts(store->log_mac, last) && log_is_newest(store, last))) {
        doubt(store, &last->execution_id, "retention leaves its lines");
        return false;
    }
    if (store->log_mac && last->logged_at_us >= before_us)
        return false;
    return log_checked_add(store, &last->execution_id) == 0;
}

/* ---- which lines a note covers ---- */

void log_note_from(struct log_note *note, struct str from_hash)
{
    note->part.follows = from_hash.data != NULL;
    if (note->part.follows && !hash_from_hex(from_hash, note->part.from, HASH_BYTES))
        memset(note->part.from, 0xff, HASH_BYTES); /* so its code does not match */
}

struct str log_note_from_hex(const struct log_note *note, char hex[HASH_HEX_BYTES + 1])
{
    if (!note->part.follows)
        return STR_NONE;
    hash_hex(note->part.from, HASH_BYTES, hex);
    return str_span(hex, HASH_HEX_BYTES);
}

struct log_part log_part_after(const struct log_head *before, const struct log_head *head)
{
    struct log_part part = {.head = *head, .lines = head->seq - before->seq,
                            .follows = before->seq > 0};

    if (part.follows && before->hashed)
        memcpy(part.from, before->hash, sizeof part.from);
    return part;
}

/* Do the lines of the note follow those of the part? Older versions do not say what they follow. */
static bool is_next(const struct log_part *part, const struct log_part *note)
{
    if (note->head.seq - note->lines != part->head.seq)
        return false;
    return !note->follows || memcmp(note->from, part->head.hash, HASH_BYTES) == 0;
}

void log_part_add(struct store *store, struct log_part *part, const struct log_note *note)
{
    const struct log_part *added = &note->part;
    bool empty = part->lines == 0;

    if (added->lines < 0 || added->lines > added->head.seq)
        return;
    if (store->log_mac && !logmac_good(store->log_mac, note)) {
        if (added->lines > 0)
            doubt(store, &added->head.execution_id, "a note of its lines does not count");
        return;
    }
    if (added->lines == 0) { /* a record names these */
        *part = (struct log_part){.head = added->head};
        return;
    }
    if (empty || !is_next(part, added)) { /* verify compares what they follow with the records */
        *part = *added;
        part->closed = false;
        return;
    }
    part->head = added->head;
    part->lines += added->lines;
}

int log_note_seal(struct store *store, struct log_note *note)
{
    note->mac[0] = '\0';
    if (!store->log_mac)
        return 0;
    return logmac_make(store->log_mac, note, note->mac) == -ERR_MEMORY ? -ERR_MEMORY : 0;
}

void log_line_level(struct log_line *line, struct str word)
{
    if (!severity_parse(word, &line->level) || !str_is(word, severity_word(line->level)))
        memset(&line->task_id, 0, sizeof line->task_id);
}
