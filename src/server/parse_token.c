/* Tokens from JSON. Pure, any thread. */
#include "server/parse_token.h"

#include "base/clock.h"
#include "core/bounds.h"
#include "core/queue_name.h"
#include "server/body.h"
#include "server/parse_queue.h"

#define SCOPE_WORDS_MAX 64
#define OVERLAP_MS_MAX (INT64_C(30) * 86400 * 1000)

static int unknown_word(struct str word, const char *field, struct err *err)
{
    BUF_AUTO struct buf words = BUF_INIT(1024);

    for (uint32_t i = 0; i < roles_count; i++) {
        buf_text(&words, i ? ", " : "");
        buf_text(&words, roles[i].word);
    }
    return err_set_field(err, ERR_INVALID, field, "there is no %s '" STR_FMT "'; roles are " STR_FMT
                         ", and GET /v1/whoami shows scopes", field,
                         STR_ARG(str_cut(word, 60)), STR_ARG(buf_view(&words)));
}

/* A role, or an array of scopes, which may name roles, too. */
static int parse_scopes(const struct body_field *role, const struct body_field *scopes,
                        struct arena *arena, scope_set *set, struct err *err)
{
    const struct str *words;
    struct str word = STR_NONE;
    uint32_t count = 0;

    if (!role->value.data == !scopes->value.data)
        return err_set_field(err, ERR_INVALID, "scopes", "say what the token allows, by 'role' or "
                             "by 'scopes', such as {\"role\":\"worker\"} or "
                             "{\"scopes\":[\"tasks:enqueue\"]}");
    TRY(body_text(role, BOUND_NAME_BYTES, arena, &word, err));
    if (word.data && !role_find(word))
        return unknown_word(word, "role", err);
    if (word.data)
        return scopes_add_word(set, word) ? 0 : unknown_word(word, "role", err);
    TRY(body_texts(scopes, SCOPE_WORDS_MAX, BOUND_NAME_BYTES, true, arena, &words, &count, err));
    for (uint32_t i = 0; i < count; i++)
        if (!scopes_add_word(set, words[i]))
            return unknown_word(words[i], "scopes", err);
    return *set ? 0 : err_set_field(err, ERR_INVALID, "scopes", "'scopes' is empty; a token needs "
                                    "at least one");
}

static int parse_names(const struct body_field *field, uint32_t max, struct arena *arena,
                       struct name_list *list, struct err *err)
{
    TRY(body_texts(field, max, BOUND_NAME_BYTES, true, arena, &list->names, &list->count, err));
    for (uint32_t i = 0; i < list->count; i++)
        TRY(body_check_name(field->name, list->names[i], BOUND_NAME_BYTES, err));
    if (field->value.data && list->count == 0)
        return err_set_field(err, ERR_INVALID, field->name, "'%s' is empty, which would allow "
                             "none; leave it out to allow all", field->name);
    return 0;
}

static int parse_end(const struct body_field *field, struct arena *arena, int64_t *end_us,
                     struct err *err)
{
    struct str text = STR_NONE;

    TRY(body_text(field, BOUND_NAME_BYTES, arena, &text, err));
    if (!text.data || (clock_parse(text, end_us) && *end_us > 0))
        return 0;
    return err_set_field(err, ERR_INVALID, field->name,
                         "'%s' must be a time such as 2027-03-28T01:00:00Z", field->name);
}

int parse_token(struct str object, struct arena *arena, struct access_request *request,
                struct err *err)
{
    enum { NAME, ROLE, SCOPES, NAMESPACE, USER, QUEUES, TYPES, CATEGORIES, RATE, TASKS, END,
           COUNT };
    struct body_field fields[COUNT] = {
        {.name = "name"},    {.name = "role"},   {.name = "scopes"}, {.name = "namespace"},
        {.name = "user_id"}, {.name = "queues"}, {.name = "types"},  {.name = "categories"},
        {.name = "rate"},    {.name = "max_tasks"},
        {.name = "expires_at"}};
    struct principal *made = &request->made;

    TRY(body_parse(object, fields, COUNT, err));
    TRY(body_text(&fields[NAME], BOUND_NAME_BYTES, arena, &request->token.name, err));
    if (!request->token.name.data)
        return err_set_field(err, ERR_INVALID, "name", "a token needs a 'name', by which people "
                             "know it");
    TRY(body_check_name("name", request->token.name, BOUND_NAME_BYTES, err));
    TRY(parse_scopes(&fields[ROLE], &fields[SCOPES], arena, &made->scopes, err));
    TRY(body_text(&fields[NAMESPACE], BOUND_NAME_BYTES, arena, &made->namespace_name, err));
    if (made->namespace_name.data && !str_is(made->namespace_name, ACCESS_ANY_NAMESPACE))
        TRY(namespace_check_name(made->namespace_name, err));
    TRY(body_text(&fields[USER], BOUND_KEY_BYTES, arena, &made->user_id, err));
    if (made->user_id.data)
        TRY(body_check_name("user_id", made->user_id, BOUND_KEY_BYTES, err));
    TRY(parse_names(&fields[QUEUES], BOUND_CLAIM_QUEUES, arena, &made->queues, err));
    TRY(parse_names(&fields[TYPES], BOUND_CLAIM_TYPES, arena, &made->types, err));
    TRY(parse_names(&fields[CATEGORIES], BOUND_CLAIM_TYPES, arena, &made->categories, err));
    TRY(parse_rate(&fields[RATE], &made->rate, err));
    TRY(body_int(&fields[TASKS], 1, BOUND_TOKEN_TASKS, &made->max_tasks, err));
    return parse_end(&fields[END], arena, &made->expires_at_us, err);
}

int parse_rotation(struct str object, struct access_request *request, struct err *err)
{
    struct body_field field = {.name = "overlap_ms"};

    TRY(body_parse(object, &field, 1, err));
    return body_int(&field, 0, OVERLAP_MS_MAX, &request->overlap_ms, err);
}
