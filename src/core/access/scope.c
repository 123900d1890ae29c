/* The tables of scopes and roles, and what one scope includes of another. Pure; any thread. */
#include "core/access/scope.h"

#include "base/json.h"

static const struct {
    const char *word, *text;
} scopes_table[SCOPE_COUNT] = {
#define X(name, word, text) {word, text},
    SCOPES(X)
#undef X
};

#define VIEWER                                                                                    \
    (SCOPE_BIT(SCOPE_TASKS_READ) | SCOPE_BIT(SCOPE_PLANS_READ) | SCOPE_BIT(SCOPE_METRICS_READ))
#define READER (VIEWER | SCOPE_BIT(SCOPE_PAYLOADS_READ))

const struct role roles[] = {
    {"viewer", VIEWER},
    {"reader", READER},
    {"producer", SCOPE_BIT(SCOPE_TASKS_ENQUEUE) | SCOPE_BIT(SCOPE_PLANS_RUN)},
    {"worker", SCOPE_BIT(SCOPE_WORK)},
    {"operator", READER | SCOPE_BIT(SCOPE_TASKS_CONTROL) | SCOPE_BIT(SCOPE_PLANS_RUN) |
                     SCOPE_BIT(SCOPE_QUEUES_WRITE)},
    {"editor", READER | SCOPE_BIT(SCOPE_PLANS_WRITE) | SCOPE_BIT(SCOPE_PLANS_RUN) |
                   SCOPE_BIT(SCOPE_QUEUES_WRITE)},
    {"admin", SCOPE_BIT(SCOPE_ADMIN)},
};
const uint32_t roles_count = sizeof roles / sizeof roles[0];

const char *scope_word(enum scope scope)
{
    return scopes_table[scope].word;
}

const char *scope_text(enum scope scope)
{
    return scopes_table[scope].text;
}

bool scope_parse(struct str word, enum scope *scope)
{
    for (int i = 0; i < SCOPE_COUNT; i++)
        if (str_is(word, scopes_table[i].word)) {
            *scope = (enum scope)i;
            return true;
        }
    return false;
}

const struct role *role_find(struct str word)
{
    for (uint32_t i = 0; i < roles_count; i++)
        if (str_is(word, roles[i].word))
            return &roles[i];
    return NULL;
}

/* With all that its members include. */
static scope_set spread(scope_set scopes)
{
    if (scopes & SCOPE_BIT(SCOPE_ADMIN))
        return SCOPE_BIT(SCOPE_COUNT) - 1;
    if (scopes & SCOPE_BIT(SCOPE_PAYLOADS_READ))
        scopes |= SCOPE_BIT(SCOPE_TASKS_READ);
    return scopes;
}

bool scopes_allow(scope_set scopes, enum scope scope)
{
    return spread(scopes) & SCOPE_BIT(scope);
}

bool scopes_include(scope_set whole, scope_set part)
{
    return (spread(part) & ~spread(whole)) == 0;
}

bool scopes_add_word(scope_set *scopes, struct str word)
{
    const struct role *role = role_find(word);
    enum scope scope;

    if (role)
        *scopes |= role->scopes;
    else if (scope_parse(word, &scope))
        *scopes |= SCOPE_BIT(scope);
    else
        return false;
    return true;
}

void scopes_write(struct buf *out, scope_set scopes)
{
    const char *between = "";

    for (int i = 0; i < SCOPE_COUNT; i++)
        if (scopes & SCOPE_BIT(i)) {
            buf_text(out, between);
            buf_text(out, scopes_table[i].word);
            between = " ";
        }
}

int scopes_read(struct str words, scope_set *scopes, struct err *err)
{
    *scopes = 0;
    while (words.len) {
        const char *space = memchr(words.data, ' ', words.len);
        size_t len = space ? (size_t)(space - words.data) : words.len;
        struct str word = str_cut(str_span(words.data, len), 64);

        if (len && !scopes_add_word(scopes, str_span(words.data, len)))
            return err_set(err, ERR_INVALID, "there is no scope or role '" STR_FMT "'",
                           STR_ARG(word));
        words = str_span(words.data + len + (space ? 1 : 0), words.len - len - (space ? 1 : 0));
    }
    return 0;
}

void scopes_write_json(struct buf *out, scope_set scopes)
{
    buf_byte(out, '[');
    for (int i = 0; i < SCOPE_COUNT; i++)
        if (scopes & SCOPE_BIT(i)) {
            json_comma(out);
            json_write_string(out, str_of(scopes_table[i].word));
        }
    buf_byte(out, ']');
}
