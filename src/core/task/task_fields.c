#include "core/task/task_fields.h"

/* ---- words ---- */

static const char *word_of_status(int value)
{
    return value == STATUS_NONE ? NULL : status_word((enum status)value);
}

static int status_of_word(struct str word)
{
    enum status status = STATUS_NONE;

    status_parse(word, &status);
    return (int)status;
}

static const char *word_of_unique_until(int value)
{
    return unique_until_word((enum unique_until)value);
}

static int unique_until_of_word(struct str word)
{
    enum unique_until until = UNIQUE_FOREVER;

    unique_until_parse(word, &until);
    return (int)until;
}

static const char *word_of_on_unsatisfied(int value)
{
    return on_unsatisfied_word((enum on_unsatisfied)value);
}

static int on_unsatisfied_of_word(struct str word)
{
    enum on_unsatisfied what = UNSATISFIED_CANCEL;

    on_unsatisfied_parse(word, &what);
    return (int)what;
}

static const char *word_of_policy(int value)
{
    return retry_policy_word((enum retry_policy)value);
}

static int policy_of_word(struct str word)
{
    enum retry_policy policy = RETRY_POLYNOMIAL;

    retry_policy_parse(word, &policy);
    return (int)policy;
}

static const struct field_words status_words = {word_of_status, status_of_word};
static const struct field_words unique_until_words = {word_of_unique_until, unique_until_of_word};
static const struct field_words on_unsatisfied_words = {word_of_on_unsatisfied,
                                                        on_unsatisfied_of_word};
static const struct field_words retry_policy_words = {word_of_policy, policy_of_word};
static const struct field_words no_words;

/* ---- columns ---- */

#define COLUMN(column, path, column_kind, column_flags, column_empty, column_words)                \
    {.name = #column, .kind = FIELD_##column_kind, .flags = (column_flags),                        \
     .offset = (uint16_t)offsetof(struct task, path), .empty = (column_empty),                     \
     .words = &column_words##_words}
#define TASK_FIELD_ROW(name, path, kind, flags, empty, words, show, ask)                           \
    COLUMN(name, path, kind, flags, empty, words),
#define KEYS                                                                                       \
    COLUMN(task, key, INT, FIELD_ALWAYS, 0, no),                                                 \
        COLUMN(lane, row.lane, INT, FIELD_ALWAYS, 0, no)

const struct field task_specs[TASK_SPECS_ALL] = {
    KEYS,
    TASK_FIELDS_ONLY(ROW, NOT, NOT, NOT, NOT, NOT)
    TASK_FIELDS_ONLY(NOT, ROW, NOT, NOT, NOT, NOT)
};

const struct field task_states[TASK_STATES_ALL] = {
    KEYS,
    TASK_FIELDS_ONLY(NOT, NOT, ROW, NOT, NOT, NOT)
    TASK_FIELDS_ONLY(NOT, NOT, NOT, ROW, NOT, NOT)
    TASK_FIELDS_ONLY(NOT, NOT, NOT, NOT, ROW, NOT)
    TASK_FIELDS_ONLY(NOT, NOT, NOT, NOT, NOT, ROW)
    COLUMN(rev, row.rev, INT, FIELD_ALWAYS, 0, no),
};

/* ---- texts ---- */

#define TEXT_TEXT(path) offsetof(struct task, path),
#define TEXT_BODY(path)
#define TEXT_INT(path)
#define TEXT_TIME(path)
#define TEXT_BOOL(path)
#define TEXT_UUID(path)
#define TEXT_WORD(path)
#define TEXT_AT(name, path, kind, flags, empty, words, show, ask) TEXT_##kind(path)

struct str *task_text(struct task *task, size_t at)
{
    static const uint16_t offsets[TASK_TEXTS_COUNT] = {TASK_FIELDS_ALL(TEXT_AT)};

    return (struct str *)(void *)((char *)task + offsets[at]);
}

static const struct task_sealed *copy_sealed(const struct task_sealed *sealed,
                                             struct arena *arena)
{
    struct task_sealed *copy = sealed ? arena_copy(arena, sealed, sizeof *sealed) : NULL;

    for (size_t i = 0; copy && i < SEAL_TEXTS_COUNT; i++) {
        copy->stored[i] = arena_str(arena, copy->stored[i]);
        copy->clear[i] = arena_str(arena, copy->clear[i]);
    }
    return copy;
}

struct task *task_copy(const struct task *task, struct arena *arena)
{
    struct task *copy = arena_copy(arena, task, sizeof *task);

    if (!copy)
        return NULL;
    for (size_t i = 0; i < TASK_TEXTS_COUNT; i++)
        *task_text(copy, i) = arena_str(arena, *task_text(copy, i));
    copy->spec.payload = arena_str(arena, task->spec.payload);
    copy->data = arena_str(arena, task->data);
    copy->row.sealed = copy_sealed(task->row.sealed, arena);
    copy->row.sealed_in = 0;
    return copy;
}

/* ---- editable texts ---- */

#define ASK_NOT
#define ASK_TEXT(name, path, bytes, flag, value, help)
#define ASK_COUNT(name, path, given, max, flag, help)
#define ASK_MS(name, path, given, min, flag, help)
#define ASK_EDIT(member, path, bytes, flag, value, help)                                           \
    {.name = #member, .at = offsetof(struct task, path) - offsetof(struct task, about),            \
     .bytes_max = (bytes)},
#define EDIT(name, path, kind, flags, empty, words, show, ask) ask

const struct task_edit task_edits[] = {TASK_FIELDS_ALL(EDIT){.name = NULL}};
_Static_assert(sizeof task_edits / sizeof *task_edits <= TASK_EDITS_MAX + 1,
               "raise TASK_EDITS_MAX");
