/* Rows of tokens: their fields, what they allow, and how they are shown. Pure; any thread. */
#include "core/access/token.h"

#include "base/json.h"
#include "core/bounds.h"
#include "core/render.h"

#define LIST_BYTES_MAX ((size_t)1024 * 1024)

#define TOKEN(...) FIELD_ROW(token_row, __VA_ARGS__),
static const struct field token_fields[] = {TOKEN_FIELDS(TOKEN)};
const struct field_table token_table = FIELD_TABLE(token_row, "token", "k", token_fields);

static const struct field use_fields[] = {FIELD_ROW(token_use, id, id, TEXT, 0),
                                          FIELD_ROW(token_use, at, at_us, TIME, FIELD_ALWAYS)};
const struct field_table token_use_table = FIELD_TABLE(token_use, "token_use", "u", use_fields);

static const struct field count_fields[] = {FIELD_ROW(token_count, id, id, TEXT, 0),
                                            FIELD_ROW(token_count, tasks, tasks, INT, 0)};
const struct field_table token_count_table = FIELD_TABLE(token_count, "token_count", "c",
                                                         count_fields);

static int damaged(const struct token_row *row, const char *what, struct err *err)
{
    return err_set(err, ERR_INTERNAL, "the %s of token " STR_FMT " cannot be read; revoke it and "
                   "make a new one", what, STR_ARG(str_cut(row->id, 40)));
}

static int read_names(const struct token_row *row, const char *what, struct str json,
                      struct arena *arena, struct name_list *list, struct err *err)
{
    struct json_iter iter;
    struct str value, *names;

    *list = (struct name_list){0};
    if (!json.data)
        return 0;
    if (json_check(json, &json, NULL) < 0 || json_kind(json) != JSON_ARRAY)
        return damaged(row, what, err);
    names = TRY_MEMORY(arena_alloc_array(arena, json_count(json) + 1, sizeof *names));
    json_begin(json, &iter);
    while (json_next_element(&iter, &value)) {
        if (json_kind(value) != JSON_STRING)
            return damaged(row, what, err);
        names[list->count] = json_string(value, arena);
        TRY_MEMORY(names[list->count++].data);
    }
    list->names = names;
    return 0;
}

static int read_rate(const struct token_row *row, struct rate_rule *rate, struct err *err)
{
    struct str json = row->rate;

    *rate = (struct rate_rule){0};
    if (!json.data)
        return 0;
    if (json_check(json, &json, NULL) < 0 || json_kind(json) != JSON_OBJECT ||
        !json_int64(json_get(json, STR("count")), &rate->count) ||
        !json_int64(json_get(json, STR("per_ms")), &rate->per_ms) || rate->count < 1 ||
        rate->per_ms < 1)
        return damaged(row, "rate", err);
    json = json_get(json, STR("burst"));
    if (json.data && (!json_int64(json, &rate->burst) || rate->burst < 0))
        return damaged(row, "rate", err);
    return 0;
}

int token_principal(const struct token_row *row, struct arena *arena, struct principal *principal,
                    struct err *err)
{
    *principal = (struct principal){.kind = PRINCIPAL_TOKEN,
                                    .name = row->name,
                                    .id = row->id,
                                    .namespace_name = row->namespace_name,
                                    .user_id = row->user_id,
                                    .max_tasks = row->max_tasks,
                                    .expires_at_us = row->expires_at_us};
    principal->key = arena_format(arena, "token:" STR_FMT, STR_ARG(row->id));
    TRY_MEMORY(principal->key.data);
    TRY(scopes_read(row->scopes, &principal->scopes, err));
    TRY(read_names(row, "queues", row->queues, arena, &principal->queues, err));
    TRY(read_names(row, "types", row->types, arena, &principal->types, err));
    TRY(read_names(row, "categories", row->categories, arena, &principal->categories, err));
    return read_rate(row, &principal->rate, err);
}

static struct str names_json(const struct name_list *list, struct arena *arena)
{
    BUF_AUTO struct buf text = BUF_INIT(LIST_BYTES_MAX);

    buf_byte(&text, '[');
    for (uint32_t i = 0; i < list->count; i++) {
        json_comma(&text);
        json_write_string(&text, list->names[i]);
    }
    buf_byte(&text, ']');
    return text.failed ? STR_NONE : arena_str(arena, buf_view(&text));
}

static struct str rate_json(const struct rate_rule *rate, struct arena *arena)
{
    if (rate->burst)
        return arena_format(arena, "{\"count\":%lld,\"per_ms\":%lld,\"burst\":%lld}",
                            (long long)rate->count, (long long)rate->per_ms,
                            (long long)rate->burst);
    return arena_format(arena, "{\"count\":%lld,\"per_ms\":%lld}", (long long)rate->count,
                        (long long)rate->per_ms);
}

int token_keep_rights(struct token_row *row, const struct principal *principal,
                      struct arena *arena, struct err *err)
{
    BUF_AUTO struct buf scopes = BUF_INIT(1024);

    scopes_write(&scopes, principal->scopes);
    row->scopes = arena_str(arena, buf_view(&scopes));
    row->queues = names_json(&principal->queues, arena);
    row->types = names_json(&principal->types, arena);
    row->categories = names_json(&principal->categories, arena);
    row->max_tasks = principal->max_tasks;
    row->rate = principal->rate.count ? rate_json(&principal->rate, arena) : STR_NONE;
    TRY_MEMORY(row->scopes.data && row->queues.data && row->types.data && row->categories.data &&
               (!principal->rate.count || row->rate.data));
    return 0;
}

bool token_copy(const struct token_row *row, struct arena *arena, struct token_row *copy)
{
    *copy = *row;
    for (size_t i = 0; i < sizeof token_fields / sizeof *token_fields; i++) {
        struct str *text = (struct str *)(void *)((char *)copy + token_fields[i].offset);

        if (token_fields[i].kind == FIELD_TEXT)
            *text = arena_str(arena, *text);
    }
    return !arena->failed;
}

enum token_status token_status(const struct token_row *row, int64_t now_us)
{
    if (row->revoked_at_us)
        return TOKEN_REVOKED;
    return row->expires_at_us && row->expires_at_us <= now_us ? TOKEN_EXPIRED : TOKEN_LIVE;
}

const char *token_status_word(enum token_status status)
{
    static const char *const words[] = {
        [TOKEN_LIVE] = "live", [TOKEN_EXPIRED] = "expired", [TOKEN_REVOKED] = "revoked"};

    return words[status];
}

/* null where there is no limit */
static void render_limit(struct buf *out, const char *key, int64_t value, int64_t limit)
{
    if (limit)
        render_int(out, key, value);
    else
        render_json(out, key, STR_NONE);
}

void token_write_members(struct buf *out, const struct token_row *row, int64_t now_us)
{
    scope_set scopes = 0;

    scopes_read(row->scopes, &scopes, NULL);
    render_text(out, "id", row->id);
    render_text(out, "name", row->name);
    render_text(out, "status", str_of(token_status_word(token_status(row, now_us))));
    render_text(out, "namespace", row->namespace_name);
    json_write_key(out, "scopes");
    scopes_write_json(out, scopes);
    render_text(out, "user_id", row->user_id);
    render_json(out, "queues", row->queues);
    render_json(out, "types", row->types);
    render_json(out, "categories", row->categories);
    render_json(out, "rate", row->rate);
    render_limit(out, "max_tasks", row->max_tasks, row->max_tasks);
    render_limit(out, "open_tasks", row->open_tasks, row->max_tasks);
    render_time(out, "created_at", row->created_at_us);
    render_text(out, "created_by", row->created_by);
    render_text(out, "created_by_id", row->created_by_id);
    render_time(out, "expires_at", row->expires_at_us);
    render_time(out, "revoked_at", row->revoked_at_us);
    render_time(out, "former_until", row->former_until_us);
    render_time(out, "last_used_at", row->last_used_at_us);
}

void token_write_json(struct buf *out, const struct token_row *row, int64_t now_us)
{
    buf_byte(out, '{');
    token_write_members(out, row, now_us);
    buf_byte(out, '}');
}
