/* Opening: encrypted texts of tasks, results, checkpoints and recovery entries become clear, or say
 * that they are encrypted. The writer's thread and readers, each with an opener of its own. */
#include "store/sealed/sealed_int.h"

#include "core/seal/seal_members.h"
#include "core/task/checkpoint.h"

#include <sodium.h>

const struct seal_at seal_task_places[SEAL_TEXTS_COUNT] = {
    [SEAL_PAYLOAD] = {.table = "tasks", .column = "payload", .json = true},
    [SEAL_DATA] = {.table = "tasks", .column = "data", .json = true},
    [SEAL_ERROR] = {.table = "tasks", .column = "error"},
    [SEAL_LAST_ERROR] = {.table = "tasks", .column = "last_error"},
    [SEAL_DETAILS] = {.table = "tasks", .column = "error_details", .json = true},
    [SEAL_CHECKPOINT] = {.table = "tasks", .column = "checkpoint_data", .json = true},
};

const size_t seal_task_offsets[SEAL_TEXTS_COUNT] = {
    [SEAL_PAYLOAD] = offsetof(struct task, spec.payload),
    [SEAL_DATA] = offsetof(struct task, data),
    [SEAL_ERROR] = offsetof(struct task, fault.error),
    [SEAL_LAST_ERROR] = offsetof(struct task, fault.last),
    [SEAL_DETAILS] = offsetof(struct task, fault.details),
    [SEAL_CHECKPOINT] = offsetof(struct task, resume.checkpoint),
};

void opener_begin(struct opener *opener, struct sealed *sealed, struct rows *rows,
                  struct arena *arena, struct err *err)
{
    *opener = (struct opener){.sealed = sealed, .rows = rows, .arena = arena, .err = err};
}

void opener_end(struct opener *opener)
{
    sodium_memzero(opener->key.bytes, sizeof opener->key.bytes);
    seal_cipher_deinit(&opener->cipher);
}

static struct str placeholder(enum opened opened)
{
    return opened == OPENED_DESTROYED ? STR(SEALED_DESTROYED_TEXT)
           : opened == OPENED_DAMAGED ? STR(SEALED_DAMAGED_TEXT)
                                      : STR(SEALED_TEXT);
}

static int replaced(struct opener *opener, struct str *text, enum opened opened)
{
    *text = placeholder(opened);
    keyring_count(opener->sealed->keyring, opened);
    return 0;
}

/* A key of the transaction under way is known to the writer alone. */
static int load_key(struct opener *opener, const struct uuid *id)
{
    const struct fresh_key *fresh = opener->rows->reads ? NULL : opener->sealed->fresh;

    if (opener->has_key && uuid_eq(&opener->key.id, id))
        return 0;
    opener->has_key = false;
    while (fresh && !uuid_eq(&fresh->row.id, id))
        fresh = fresh->next;
    if (fresh) {
        opener->key = (struct data_key){fresh->row.id, fresh->row.namespace_name, {0}};
        memcpy(opener->key.bytes, fresh->bytes, sizeof opener->key.bytes);
        opener->key_opened = OPENED_WELL;
    } else {
        TRY(keyring_get(opener->sealed->keyring, opener->rows, id, opener->arena, &opener->key,
                        &opener->key_opened, opener->err));
    }
    opener->has_key = true;
    return 0;
}

static int open_envelope(struct opener *opener, struct str namespace_name,
                         const struct seal_at *at, struct str pointer,
                         const struct envelope *envelope, struct str *clear, enum opened *opened)
{
    struct seal_place place = {.table = at->table,
                               .row = at->row,
                               .column = at->column,
                               .pointer = pointer};
    int rc;

    TRY(load_key(opener, &envelope->key_id));
    *opened = opener->key_opened;
    if (*opened != OPENED_WELL)
        return 0;
    place.namespace_name = opener->key.namespace_name;
    if (namespace_name.data && !str_eq(namespace_name, place.namespace_name)) {
        *opened = OPENED_DAMAGED;
        return 0;
    }
    rc = envelope_open(&opener->cipher, opener->key.bytes, envelope, &place, opener->arena, clear);
    if (rc == -ERR_MEMORY)
        return err_no_memory(opener->err);
    *opened = rc < 0 ? OPENED_DAMAGED : OPENED_WELL;
    return 0;
}

static int open_at(struct opener *opener, struct str namespace_name, const struct seal_at *at,
                   struct str pointer, struct str *text, enum opened *opened)
{
    struct envelope envelope;
    struct str clear;

    *opened = OPENED_CLEAR;
    if (!text->data || !envelope_like(*text))
        return 0;
    *opened = OPENED_DAMAGED;
    if (envelope_parse(*text, &envelope))
        TRY(open_envelope(opener, namespace_name, at, pointer, &envelope, &clear, opened));
    if (*opened != OPENED_WELL)
        return replaced(opener, text, *opened);
    keyring_count(opener->sealed->keyring, OPENED_WELL);
    *text = clear;
    return 0;
}

int open_text(struct opener *opener, struct str namespace_name, const struct seal_at *at,
              struct str *text, enum opened *opened)
{
    return open_at(opener, namespace_name, at, STR_NONE, text, opened);
}

/* ---- payload, data, result ---- */

struct member_open {
    struct opener *opener;
    struct str namespace_name;
    const struct seal_at *at;
    enum opened worst;
};

/* What stands where a pointer leads was encrypted when it was stored: anything else was put there
 * since. */
static int open_one(void *opaque, struct str pointer, struct str value, struct arena *arena,
                    struct str *out)
{
    struct member_open *member = opaque;
    enum opened opened;

    (void)arena;
    *out = value;
    TRY(open_at(member->opener, member->namespace_name, member->at, pointer, out, &opened));
    if (opened == OPENED_CLEAR) {
        opened = OPENED_DAMAGED;
        replaced(member->opener, out, opened);
    }
    if (opened > member->worst)
        member->worst = opened;
    return 0;
}

int open_body(struct opener *opener, const struct task_seal *seal, struct str namespace_name,
              const struct seal_at *at, struct str *text, enum opened *opened)
{
    struct member_open member = {opener, namespace_name, at, OPENED_CLEAR};
    int rc;

    *opened = OPENED_CLEAR;
    if (!text->data)
        return 0;
    if (seal->encrypt || !seal->fields.data) {
        TRY(open_at(opener, namespace_name, at, STR_NONE, text, opened));
        if (seal->encrypt && *opened == OPENED_CLEAR) {
            *opened = OPENED_DAMAGED; /* nothing of it was ever stored in the clear */
            return replaced(opener, text, *opened);
        }
        return 0;
    }
    opener->err->code = ERR_NONE;
    rc = seal_members(*text, seal->fields, open_one, &member, opener->arena, text);
    if (rc < 0 && opener->err->code == ERR_NONE)
        return err_no_memory(opener->err);
    *opened = member.worst;
    return rc;
}

int open_result(struct opener *opener, int64_t task_key, struct str *result)
{
    char space[SEAL_ROW_BYTES];
    const struct seal_at at = {.table = "task_results", .column = "payload", .json = true,
                               .row = seal_row_number(task_key, space)};
    struct task_seal seal = {.encrypt = true};
    struct sealed_task *stored;
    enum opened opened;

    if (!result->data)
        return 0;
    if (!envelope_like(*result)) {
        TRY(keys_task(opener->rows, task_key, opener->arena, &stored, opener->err));
        if (!stored)
            return 0;
        seal = (struct task_seal){stored->encrypt, stored->encrypt_fields};
    }
    return open_body(opener, &seal, STR_NONE, &at, result, &opened);
}

/* ---- tasks ---- */

/* Of an error by hand, set with SQL, nothing was ever encrypted. */
static int open_task_text(struct opener *opener, struct task *task, enum seal_text which,
                          struct str row, enum opened *opened)
{
    struct str *text = seal_task_text(task, which);
    struct seal_at at = seal_task_places[which];
    struct task_seal all = {.encrypt = true};

    at.row = row;
    if (which == SEAL_PAYLOAD || which == SEAL_DATA)
        return open_body(opener, &task->spec.seal, task->spec.namespace_name, &at, text, opened);
    if (which == SEAL_CHECKPOINT && (task->spec.seal.encrypt || task->spec.seal.fields.data))
        return open_body(opener, &all, task->spec.namespace_name, &at, text, opened);
    return open_at(opener, task->spec.namespace_name, &at, STR_NONE, text, opened);
}

int open_task(struct opener *opener, struct task *task)
{
    struct task_sealed *kept = NULL;
    char space[SEAL_ROW_BYTES];
    struct str row = STR_NONE;

    task->row.sealed = NULL;
    task->row.sealed_in = 0;
    task->row.locked = false;
    if (!task->has_spec && opener->rows->reads)
        task->has_spec = true; /* readers give whole tasks and do not say so */
    for (int i = 0; i < SEAL_TEXTS_COUNT; i++) {
        struct str *text = seal_task_text(task, (enum seal_text)i);
        struct str stored = *text;
        enum opened opened;

        if (!stored.data)
            continue;
        if (!row.data)
            row = seal_row_id(&task->id, space);
        TRY(open_task_text(opener, task, (enum seal_text)i, row, &opened));
        if (opened == OPENED_CLEAR)
            continue;
        if (!kept)
            kept = arena_alloc(opener->arena, sizeof *kept);
        if (!kept)
            return err_no_memory(opener->err);
        kept->stored[i] = stored;
        kept->clear[i] = *text;
        task->row.locked |= opened != OPENED_WELL &&
                            (i == SEAL_PAYLOAD || i == SEAL_DATA || i == SEAL_CHECKPOINT);
    }
    task->row.sealed = kept;
    return 0;
}

/* ---- checkpoints ---- */

/* The stored hash is over what is stored. A checkpoint that fits it gets the hash of its clear
 * text, so that the engine finds it intact; one that could not be opened never is. */
int open_checkpoint(struct opener *opener, const struct uuid *task_id,
                    struct checkpoint *checkpoint, enum opened *opened)
{
    struct str *const texts[] = {&checkpoint->data, &checkpoint->database_state,
                                 &checkpoint->file_state};
    static const char *const columns[] = {"recoverable_data", "database_state", "file_state"};
    bool intact = checkpoint_intact(task_id, checkpoint);
    char space[SEAL_ROW_BYTES];
    struct seal_at at = {.table = "task_checkpoints", .json = true,
                         .row = seal_row_id(&checkpoint->id, space)};

    *opened = OPENED_CLEAR;
    for (int i = 0; i < 3; i++) {
        enum opened one;

        at.column = columns[i];
        TRY(open_text(opener, STR_NONE, &at, texts[i], &one));
        if (one > *opened)
            *opened = one;
    }
    if (intact && *opened == OPENED_WELL &&
        checkpoint_hash(task_id, checkpoint, checkpoint->hash) < 0)
        return err_no_memory(opener->err);
    return 0;
}

/* ---- recovery ---- */

int open_recovery(struct opener *opener, struct recovery_entry *entry)
{
    char space[SEAL_ROW_BYTES];
    struct seal_at at = {.table = "recovery_queue", .row = seal_row_id(&entry->id, space)};
    enum opened opened;

    at.column = "error_message";
    TRY(open_text(opener, entry->namespace_name, &at, &entry->error_message, &opened));
    at.column = "recovery_result";
    at.json = true;
    return open_text(opener, entry->namespace_name, &at, &entry->result, &opened);
}
