/* Two configurations are compared field by field along the table of settings; those of lists too.
 * See config_reload.h. One thread at a time. */
#include "cli/config/config_reload.h"
#include "cli/config/store_call.h"

#include <stdlib.h>

static const void *at(const void *record, size_t offset)
{
    return (const char *)record + offset;
}

static bool same_texts(const struct str *a, const struct str *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!str_eq(a[i], b[i]))
            return false;
    return true;
}

static bool same_records(const void *a, const void *b, const struct config_record *type);

static bool same_list(const void *a, const void *b, const struct config_field *field)
{
    uint32_t count = *(const uint32_t *)at(a, field->count_offset);
    const char *const *rows_a = at(a, field->offset);
    const char *const *rows_b = at(b, field->offset);

    if (count != *(const uint32_t *)at(b, field->count_offset))
        return false;
    if (field->kind == CONFIG_TEXTS)
        return same_texts((const void *)*rows_a, (const void *)*rows_b, count);
    if (field->kind == CONFIG_RANGES)
        return count == 0 || memcmp(*rows_a, *rows_b, count * sizeof(struct address_range)) == 0;
    for (uint32_t i = 0; i < count; i++)
        if (!same_records(*rows_a + i * field->record->bytes, *rows_b + i * field->record->bytes,
                          field->record))
            return false;
    return true;
}

/* How large a value is, but for texts and lists. */
static size_t value_bytes(enum config_kind kind)
{
    switch (kind) {
    case CONFIG_BOOL:
        return sizeof(bool);
    case CONFIG_RATE:
        return sizeof(struct rate_rule);
    case CONFIG_POLICY:
        return sizeof(enum retry_policy);
    case CONFIG_ORDER:
        return sizeof(enum priority_order);
    case CONFIG_SCOPES:
        return sizeof(scope_set);
    default:
        return sizeof(int64_t);
    }
}

static bool same_field(const void *a, const void *b, const struct config_field *field)
{
    const void *in_a = at(a, field->offset), *in_b = at(b, field->offset);

    switch (field->kind) {
    case CONFIG_TEXT:
    case CONFIG_WORD:
    case CONFIG_ADDRESS:
    case CONFIG_URL:
    case CONFIG_JSON:
        return str_eq(*(const struct str *)in_a, *(const struct str *)in_b);
    case CONFIG_METADATA: /* the pointer, and its value behind it */
        return same_texts(in_a, in_b, 2);
    case CONFIG_TEXTS:
    case CONFIG_LIST:
    case CONFIG_RANGES:
    case CONFIG_GROUPS:
        return same_list(a, b, field);
    case CONFIG_ARGV:
    case CONFIG_VARIABLES:
        return str_words_same(*(char *const *const *)in_a, *(char *const *const *)in_b);
    default:
        return memcmp(in_a, in_b, value_bytes(field->kind)) == 0;
    }
}

static bool same_records(const void *a, const void *b, const struct config_record *type)
{
    for (const struct config_field *field = type->fields; field->key; field++)
        if (!same_field(a, b, field))
            return false;
    return true;
}

/* Into to, whose lists and texts are those of from afterwards. */
static void copy_field(struct config *to, const struct config *from,
                       const struct config_field *field)
{
    size_t bytes = value_bytes(field->kind);

    if (field->kind <= CONFIG_URL)
        bytes = sizeof(struct str);
    if (field->kind == CONFIG_TEXTS || field->kind == CONFIG_LIST ||
        field->kind == CONFIG_RANGES || field->kind == CONFIG_GROUPS) {
        bytes = sizeof(void *);
        memcpy((char *)to + field->count_offset, at(from, field->count_offset), sizeof(uint32_t));
    }
    memcpy((char *)to + field->offset, at(from, field->offset), bytes);
}

static void name_restart(struct buf *restart, const char *format, struct str name)
{
    if (restart->len)
        buf_text(restart, ", ");
    buf_format(restart, format, STR_ARG(name));
}

/* Which store a queue lives in is decided at the start. */
static int keep_stores(struct config *now, const struct config *before, struct buf *restart,
                       struct err *err)
{
    uint32_t count = now->settings.queues_count;
    struct queue_rule *rules = TRY_MEMORY(arena_alloc_array(&now->arena, count + 1, sizeof *rules));

    for (uint32_t i = 0; i < count; i++) {
        struct str store = STR_NONE;

        rules[i] = now->settings.queues[i];
        for (uint32_t b = 0; b < before->settings.queues_count; b++)
            if (str_eq(before->settings.queues[b].name, rules[i].name))
                store = before->settings.queues[b].store;
        if (!str_eq(store, rules[i].store))
            name_restart(restart, "store of the queue " STR_FMT, rules[i].name);
        rules[i].store = store;
    }
    now->settings.queues = rules;
    return 0;
}

/* now becomes what the file says where that may change; restart gets the names of other settings
 * that differ. For tests too. */
static int follow(struct config *now, const struct config *before, struct buf *restart,
                  struct err *err)
{
    for (uint32_t i = 0; config_root.fields[i].key; i++) {
        const struct config_field *field = &config_root.fields[i];
        enum config_origin origin = before->origins[i].origin;
        bool fixed = origin == ORIGIN_FLAG || origin == ORIGIN_ENVIRONMENT; /* win over the file */

        if (field->live && !fixed)
            continue;
        if (!fixed && !same_field(now, before, field))
            name_restart(restart, STR_FMT, str_of(field->key));
        copy_field(now, before, field);
        now->origins[i] = before->origins[i];
    }
    return keep_stores(now, before, restart, err);
}

/* Also in what files named by settings hold. */
static bool is_same(const struct config *now, const struct config *before)
{
    return same_records(now, before, &config_root) && config_same_agents(now, before) &&
           str_eq(now->file, before->file) &&
           str_eq(now->settings.access.token, before->settings.access.token) &&
           str_eq(now->settings.tracing.headers, before->settings.tracing.headers);
}

/* A file that is not there any more would take all handlers with it. */
static int check_file(const struct config *now, const struct config *before, struct err *err)
{
    if (!before->file.data && !now->file.data)
        return err_set(err, ERR_INVALID, "there is no configuration file: pass --config FILE, or "
                       "put " CONFIG_FILE_DEFAULT " into the folder it was started in");
    if (before->file.data && !now->file.data)
        return err_set(err, ERR_INVALID, STR_FMT " is gone", STR_ARG(before->file));
    return 0;
}

static int reload(void *ctx, const struct settings **fresh, struct buf *restart, struct err *err)
{
    struct config_reload *reload = ctx;
    struct config *now = TRY_MEMORY(calloc(1, sizeof *now));
    int rc;

    reload->call->err = (struct err){0};
    rc = store_call_config(reload->call, now);
    if (rc < 0)
        *err = reload->call->err;
    if (rc == 0)
        rc = check_file(now, reload->newest, err);
    if (rc == 0)
        rc = follow(now, reload->newest, restart, err);
    if (rc < 0 || is_same(now, reload->newest)) {
        config_deinit(now);
        free(now);
        *fresh = &reload->newest->settings;
        return rc;
    }
    now->older = reload->newest;
    reload->newest = now;
    *fresh = &now->settings;
    return 0;
}

void config_reload_deinit(struct config_reload *reload)
{
    while (reload->newest && reload->newest->older) {
        struct config *older = reload->newest->older;

        config_deinit(reload->newest);
        free(reload->newest);
        reload->newest = older;
    }
}

struct node_config config_reload_source(struct config_reload *ctx)
{
    return (struct node_config){reload, ctx};
}
