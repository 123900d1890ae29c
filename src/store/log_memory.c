/* A map of heads by execution, behind a mutex. It stays small: a record every few seconds empties
 * it, but for what no note told of, and a record comes early when it fills. Any thread; nothing
 * here waits for more than the mutex. */
#include "store/log_memory.h"

#include <pthread.h>
#include <stdlib.h>

#define ENTRIES_MAX 100000
#define UNSIGNED_MAX (ENTRIES_MAX / 4)
#define WAITS_MAX 3

struct entry {
    struct log_head head;
    uint64_t known; /* the commit by which it is */
    bool is_signed; /* and kept all the same */
    bool waits;      /* for its record, */
    uint32_t waited; /* so many times */
};

struct log_memory {
    pthread_mutex_t mutex;
    struct map by_id;
    uint32_t signed_count; /* of the entries */
    struct map refused;    /* struct uuid by itself */
    uint64_t commits;
    uint32_t waited;       /* the longest of them */
    int64_t found;         /* record, before what is known and not signed, */
    int64_t found_next;    /* and before what comes after the last look */
    int64_t newest; /* record */
    char newest_hash[HASH_HEX_BYTES + 1];
};

static struct str id_key(const struct uuid *id)
{
    return str_span((const char *)id->bytes, sizeof id->bytes);
}

struct log_memory *log_memory_new(void)
{
    struct log_memory *memory = calloc(1, sizeof *memory);

    if (memory)
        pthread_mutex_init(&memory->mutex, NULL);
    return memory;
}

void log_memory_free(struct log_memory *memory)
{
    struct entry *entry;
    struct uuid *id;
    uint32_t cursor = 0;

    if (!memory)
        return;
    while ((entry = map_next(&memory->by_id, &cursor)) != NULL)
        free(entry);
    map_deinit(&memory->by_id);
    cursor = 0;
    while ((id = map_next(&memory->refused, &cursor)) != NULL)
        free(id);
    map_deinit(&memory->refused);
    pthread_mutex_destroy(&memory->mutex);
    free(memory);
}

uint64_t log_memory_now(struct log_memory *memory)
{
    uint64_t now;

    pthread_mutex_lock(&memory->mutex);
    now = memory->commits;
    pthread_mutex_unlock(&memory->mutex);
    return now;
}

static void forget(struct log_memory *memory, struct entry *entry)
{
    memory->signed_count -= entry->is_signed;
    map_remove(&memory->by_id, id_key(&entry->head.execution_id));
    free(entry);
}

/* Those that a record names are kept as long as there is room. */
static void make_room(struct log_memory *memory)
{
    struct entry *entry;
    uint32_t cursor = 0;

    if (map_count(&memory->by_id) < ENTRIES_MAX || memory->signed_count == 0)
        return;
    while ((entry = map_next(&memory->by_id, &cursor)) != NULL)
        if (entry->is_signed)
            forget(memory, entry);
}

static void remember(struct log_memory *memory, const struct log_head *head)
{
    struct entry *entry = map_get(&memory->by_id, id_key(&head->execution_id));

    if (!entry)
        make_room(memory);
    if (!entry && map_count(&memory->by_id) < ENTRIES_MAX && (entry = calloc(1, sizeof *entry))) {
        entry->head.execution_id = head->execution_id;
        if (map_put(&memory->by_id, id_key(&entry->head.execution_id), entry) < 0) {
            free(entry);
            entry = NULL;
        }
    }
    if (!entry || entry->head.seq > head->seq)
        return;
    memory->signed_count -= entry->is_signed;
    entry->head = *head;
    entry->known = memory->commits;
    entry->is_signed = false;
}

static void remember_refused(struct log_memory *memory, const struct uuid *execution_id)
{
    struct uuid *id;

    if (map_get(&memory->refused, id_key(execution_id)) ||
        map_count(&memory->refused) >= ENTRIES_MAX || !(id = malloc(sizeof *id)))
        return;
    *id = *execution_id;
    if (map_put(&memory->refused, id_key(id), id) < 0)
        free(id);
}

void log_memory_commit(struct log_memory *memory, const struct log_cuts *written,
                       const struct log_cuts *refused, const struct log_cuts *cuts,
                       uint32_t cuts_count)
{
    pthread_mutex_lock(&memory->mutex);
    memory->commits++;
    for (uint32_t i = 0; i < written->count; i++)
        remember(memory, &written->items[i].head);
    for (uint32_t i = 0; i < refused->count; i++)
        remember_refused(memory, &refused->items[i].head.execution_id);
    for (uint32_t i = 0; i < cuts_count; i++)
        for (uint32_t at = 0; at < cuts[i].count; at++) {
            const struct log_head *cut = &cuts[i].items[at].head;
            struct entry *entry = map_get(&memory->by_id, id_key(&cut->execution_id));

            if (entry && entry->head.seq <= cut->seq)
                forget(memory, entry);
        }
    pthread_mutex_unlock(&memory->mutex);
}

bool log_memory_is_full(struct log_memory *memory)
{
    bool full;

    pthread_mutex_lock(&memory->mutex);
    full = map_count(&memory->by_id) - memory->signed_count >= UNSIGNED_MAX;
    pthread_mutex_unlock(&memory->mutex);
    return full;
}

bool log_memory_refused(struct log_memory *memory, const struct uuid *execution_id)
{
    bool refused;

    if (!memory)
        return false;
    pthread_mutex_lock(&memory->mutex);
    refused = map_get(&memory->refused, id_key(execution_id)) != NULL;
    pthread_mutex_unlock(&memory->mutex);
    return refused;
}

void log_memory_put_newest(struct log_memory *memory, int64_t serial,
                           const char hash[HASH_HEX_BYTES + 1])
{
    pthread_mutex_lock(&memory->mutex);
    if (serial > memory->newest) {
        memory->newest = serial;
        memcpy(memory->newest_hash, hash, sizeof memory->newest_hash);
    }
    pthread_mutex_unlock(&memory->mutex);
}

int64_t log_memory_newest(struct log_memory *memory, char hash[HASH_HEX_BYTES + 1])
{
    int64_t newest;

    pthread_mutex_lock(&memory->mutex);
    newest = memory->newest;
    memcpy(hash, memory->newest_hash, sizeof memory->newest_hash);
    pthread_mutex_unlock(&memory->mutex);
    return newest;
}

void log_memory_forget(struct log_memory *memory)
{
    struct entry *entry;
    uint32_t cursor = 0;

    pthread_mutex_lock(&memory->mutex);
    while ((entry = map_next(&memory->by_id, &cursor)) != NULL)
        forget(memory, entry);
    memory->newest = memory->found = memory->found_next = 0;
    pthread_mutex_unlock(&memory->mutex);
}

static bool same_hash(const struct log_head *head, struct str chain_hash)
{
    char hex[HASH_HEX_BYTES + 1];

    hash_hex(head->hash, sizeof head->hash, hex);
    return str_is(chain_hash, hex);
}

bool log_memory_known(struct log_memory *memory, uint64_t now, const struct uuid *execution_id,
                      struct log_head *head)
{
    const struct entry *entry;
    bool known;

    pthread_mutex_lock(&memory->mutex);
    entry = map_get(&memory->by_id, id_key(execution_id));
    known = entry && entry->known <= now;
    if (known)
        *head = entry->head;
    pthread_mutex_unlock(&memory->mutex);
    return known;
}

bool log_memory_fits(struct log_memory *memory, uint64_t now, const struct log_last *last)
{
    struct log_head known;

    return !log_memory_known(memory, now, &last->execution_id, &known) || known.seq < last->seq ||
           (known.seq == last->seq && same_hash(&known, last->chain_hash));
}

static bool is_named(const struct log_head *known, bool exactly,
                     const struct log_part *const *named, const uint32_t *named_counts,
                     uint32_t lists)
{
    for (uint32_t i = 0; i < lists; i++)
        for (uint32_t low = 0, high = named_counts[i]; low < high;) { /* they are in order */
            uint32_t middle = low + (high - low) / 2;
            const struct log_head *head = &named[i][middle].head;
            int order = memcmp(head->execution_id.bytes, known->execution_id.bytes,
                               sizeof(struct uuid));

            if (order == 0)
                return (head->seq > known->seq && !exactly) ||
                       (head->seq == known->seq &&
                        memcmp(head->hash, known->hash, HASH_BYTES) == 0);
            if (order < 0)
                low = middle + 1;
            else
                high = middle;
        }
    return false;
}

void log_written_drop(struct log_cuts *written, const struct log_part *const *named,
                      const uint32_t *named_counts, uint32_t lists)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < written->count; i++)
        if (!is_named(&written->items[i].head, false, named, named_counts, lists))
            written->items[kept++] = written->items[i];
    written->count = kept;
}

int log_memory_list(struct log_memory *memory, uint64_t now, bool shared,
                    const struct log_part *const *named, const uint32_t *named_counts,
                    uint32_t lists, struct log_cuts *out)
{
    const struct entry *entry;
    uint32_t cursor = 0;
    int rc = 0;

    pthread_mutex_lock(&memory->mutex);
    while (rc == 0 && (entry = map_next(&memory->by_id, &cursor)) != NULL) {
        char hex[HASH_HEX_BYTES + 1];

        if (entry->is_signed || entry->known > now ||
            is_named(&entry->head, shared, named, named_counts, lists))
            continue;
        hash_hex(entry->head.hash, HASH_BYTES, hex);
        rc = log_cuts_add(out, &entry->head.execution_id, entry->head.seq, str_of(hex), 0, 0);
        if (rc == 0)
            out->items[out->count - 1].written = true;
    }
    pthread_mutex_unlock(&memory->mutex);
    return rc;
}

static void take_waiting(struct log_memory *memory, const struct log_cuts *waiting)
{
    memory->waited = 0;
    for (uint32_t i = 0; i < waiting->count; i++) {
        struct entry *entry = map_get(&memory->by_id, id_key(&waiting->items[i].head.execution_id));

        if (!entry || entry->is_signed)
            continue;
        entry->waits = true;
        if (++entry->waited > memory->waited)
            memory->waited = entry->waited;
    }
}

void log_memory_signed(struct log_memory *memory, uint64_t now, const struct log_cuts *listed,
                       const struct log_cuts *waiting, int64_t found)
{
    struct entry *entry;
    uint32_t cursor = 0;

    pthread_mutex_lock(&memory->mutex);
    for (uint32_t i = 0; i < listed->count; i++) {
        entry = map_get(&memory->by_id, id_key(&listed->items[i].head.execution_id));
        if (!entry || entry->is_signed || entry->head.seq != listed->items[i].head.seq)
            continue; /* another writer of this node continued it meanwhile */
        entry->is_signed = true;
        memory->signed_count++;
    }
    take_waiting(memory, waiting);
    while ((entry = map_next(&memory->by_id, &cursor)) != NULL)
        if (entry->waits)
            entry->waits = false;
        else if (entry->known <= now && !entry->is_signed)
            forget(memory, entry);
    if (waiting->count == 0)
        memory->found = memory->found_next; /* of the look before: this one found it late */
    if (found > memory->found_next)
        memory->found_next = found;
    pthread_mutex_unlock(&memory->mutex);
}

bool log_memory_waits(struct log_memory *memory)
{
    bool waits;

    if (!memory)
        return false;
    pthread_mutex_lock(&memory->mutex);
    waits = memory->waited >= WAITS_MAX;
    pthread_mutex_unlock(&memory->mutex);
    return waits;
}

int64_t log_memory_found(struct log_memory *memory)
{
    int64_t found;

    pthread_mutex_lock(&memory->mutex);
    found = memory->found;
    pthread_mutex_unlock(&memory->mutex);
    return found;
}
