/* Perl-compatible patterns (PCRE2) on messages and on the texts and numbers inside of contexts,
 * compared as they are meant, not as they are escaped. Every match runs under a limit; where a text
 * reaches it, has more matches or takes more time than a line is worth, all of its rest is taken
 * out. Pure but for the processor's clock, any thread. */
#include "core/log/redact.h"

#include "base/json.h"
#include "core/bounds.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>
#include <time.h>

#define TEXT_BYTES_MAX (4 * (BOUND_LOG_LINE_BYTES + REDACT_MARGIN_BYTES))
#define STARTS_STEP 256      /* places a match may begin at, between two looks at the clock */
#define MATCH_STEPS_MAX 10000 /* of one place; what goes beyond has no end that is worth it */
#define MATCH_HEAP_KIB_MAX 4096
/* A dot is any character and $ the end of the text. Plain groups do not capture, so that nothing
 * can refer back to them. Text that is not UTF-8 is looked at all the same. */
#define OPTIONS                                                                                    \
    (PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C | PCRE2_NO_AUTO_CAPTURE |       \
     PCRE2_DOTALL | PCRE2_DOLLAR_ENDONLY | PCRE2_USE_OFFSET_LIMIT)

struct compiled {
    const struct redact_rule *rule;
    pcre2_code *code; /* of a pattern; else NULL */
    bool in_message, in_context;
};

struct redact {
    uint32_t count;
    struct compiled rules[];
};

/* What one line needs to be matched: not shared between threads. */
struct matcher {
    pcre2_match_context *limits;
    pcre2_match_data *data;
};

/* Of this thread: a busy machine must not make lines disappear. */
static int64_t cpu_us(void)
{
    struct timespec time;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * INT64_C(1000000) + time.tv_nsec / 1000;
}

/* ---- rules ---- */

static int compile(const struct redact_rule *rule, pcre2_code **code, struct err *err)
{
    PCRE2_SIZE at = 0;
    char why[160] = "";
    int number = 0;

    *code = NULL;
    if (rule->pattern.len == 0 || rule->pattern.len > REDACT_PATTERN_BYTES_MAX)
        return err_set(err, ERR_INVALID, "a pattern has 1 to %d bytes", REDACT_PATTERN_BYTES_MAX);
    *code = pcre2_compile((PCRE2_SPTR)rule->pattern.data, rule->pattern.len, OPTIONS, &number, &at,
                          NULL);
    if (*code)
        return 0;
    pcre2_get_error_message(number, (PCRE2_UCHAR *)why, sizeof why);
    return err_set(err, ERR_INVALID, "the pattern '" STR_FMT "' cannot be used: %s, at byte %zu",
                   (int)(rule->pattern.len < 200 ? rule->pattern.len : 200), rule->pattern.data,
                   why, (size_t)at + 1);
}

static bool names_field(const struct redact_rule *rule, const char *field)
{
    for (uint32_t i = 0; i < rule->fields_count; i++)
        if (str_is(rule->fields[i], field))
            return true;
    return rule->fields_count == 0;
}

static int check_shape(const struct redact_rule *rule, struct err *err)
{
    if (!rule->pattern.data == !rule->pointer.data)
        return err_set(err, ERR_INVALID, "a rule of redact has a pattern or a pointer, one of "
                       "them");
    if (rule->replace.len > REDACT_REPLACE_BYTES_MAX)
        return err_set(err, ERR_INVALID, "replace has at most %d bytes", REDACT_REPLACE_BYTES_MAX);
    for (uint32_t i = 0; i < rule->fields_count; i++)
        if (!str_is(rule->fields[i], "message") && !str_is(rule->fields[i], "context"))
            return err_set(err, ERR_INVALID, "fields are message and context, not '" STR_FMT "'",
                           STR_ARG(rule->fields[i]));
    if (rule->pointer.data && (rule->pointer.len == 0 || !json_pointer_valid(rule->pointer)))
        return err_set(err, ERR_INVALID, "pointer must be a JSON pointer such as /user/email");
    return 0;
}

int redact_rule_check(const struct redact_rule *rule, struct err *err)
{
    pcre2_code *code;

    TRY(check_shape(rule, err));
    if (rule->pointer.data)
        return 0;
    TRY(compile(rule, &code, err));
    pcre2_code_free(code);
    return 0;
}

int redact_new(struct redact **out, const struct redact_rule *rules, uint32_t count,
               struct err *err)
{
    struct redact *redact;

    *out = NULL;
    if (count == 0)
        return 0;
    redact = calloc(1, sizeof *redact + count * sizeof redact->rules[0]);
    if (!redact)
        return err_set(err, ERR_MEMORY, "out of memory for the rules of redact");
    for (uint32_t i = 0; i < count; i++) {
        struct compiled *one = &redact->rules[i];

        *one = (struct compiled){.rule = &rules[i]};
        one->in_message = names_field(&rules[i], "message") && rules[i].pattern.data;
        one->in_context = names_field(&rules[i], "context") || rules[i].pointer.data;
        if (check_shape(&rules[i], err) < 0 ||
            (rules[i].pattern.data && compile(&rules[i], &one->code, err) < 0)) {
            redact_free(redact);
            return -(int)err->code;
        }
        redact->count++;
    }
    *out = redact;
    return 0;
}

void redact_free(struct redact *redact)
{
    for (uint32_t i = 0; redact && i < redact->count; i++)
        pcre2_code_free(redact->rules[i].code);
    free(redact);
}

/* ---- texts ---- */

static bool matcher_init(struct matcher *matcher)
{
    matcher->limits = pcre2_match_context_create(NULL);
    matcher->data = pcre2_match_data_create(1, NULL);
    if (!matcher->limits || !matcher->data)
        return false;
    pcre2_set_match_limit(matcher->limits, MATCH_STEPS_MAX);
    pcre2_set_depth_limit(matcher->limits, MATCH_STEPS_MAX);
    pcre2_set_heap_limit(matcher->limits, MATCH_HEAP_KIB_MAX);
    return true;
}

static void matcher_deinit(struct matcher *matcher)
{
    pcre2_match_data_free(matcher->data);
    pcre2_match_context_free(matcher->limits);
}

/* The next place that is not inside of a character. */
static size_t character_at(struct str text, size_t at)
{
    while (at < text.len && ((unsigned char)text.data[at] & 0xC0) == 0x80)
        at++;
    return at;
}

/* The first match that is not empty, from `from` on: 1, or 0 when there is none, or -1 when that
 * takes longer than the text is worth. */
static int find_match(const struct compiled *one, const struct matcher *matcher, struct str text,
                      size_t from, int64_t until_us, size_t *begin, size_t *end)
{
    while (from < text.len) {
        size_t last = character_at(text, from + STARTS_STEP);
        const PCRE2_SIZE *places = pcre2_get_ovector_pointer(matcher->data);
        int rc;

        pcre2_set_offset_limit(matcher->limits, last);
        rc = pcre2_match(one->code, (PCRE2_SPTR)text.data, text.len, from, PCRE2_NOTEMPTY,
                         matcher->data, matcher->limits);
        if (rc >= 0 && places[1] > places[0]) {
            *begin = places[0];
            *end = places[1];
            return 1;
        }
        if (rc != PCRE2_ERROR_NOMATCH || cpu_us() > until_us)
            return -1;
        from = character_at(text, last + 1);
    }
    return 0;
}

/* Appends the text without its matches. False when there are none, and then what was appended is
 * the text. */
static bool replace_matches(const struct compiled *one, const struct matcher *matcher,
                            struct str text, int64_t left_us, struct buf *out)
{
    const int64_t until_us = cpu_us() + (left_us < REDACT_CPU_US_MAX ? left_us : REDACT_CPU_US_MAX);
    size_t from = 0, begin = 0, end = 0;

    for (uint32_t matches = 0; from < text.len; matches++) {
        int found = matches < REDACT_MATCHES_MAX && cpu_us() <= until_us
                        ? find_match(one, matcher, text, from, until_us, &begin, &end)
                        : -1;

        if (found <= 0) {
            if (found < 0) /* the rest goes */
                buf_str(out, one->rule->replace);
            else
                buf_append(out, text.data + from, text.len - from);
            return found < 0 || matches > 0;
        }
        buf_append(out, text.data + from, begin - from);
        buf_str(out, one->rule->replace);
        from = end;
    }
    return from > 0;
}

static int redact_text(const struct compiled *one, const struct matcher *matcher,
                       struct str *text, int64_t left_us, struct arena *arena)
{
    BUF_AUTO struct buf out = BUF_INIT(TEXT_BYTES_MAX);
    int rc = 0;

    if (replace_matches(one, matcher, *text, left_us, &out)) {
        *text = out.failed ? one->rule->replace : arena_str(arena, buf_view(&out));
        rc = text->data ? 0 : -ERR_MEMORY;
    }
    return rc;
}

/* ---- contexts ---- */

struct walk {
    const struct compiled *one;
    const struct matcher *matcher;
    int64_t until_us;    /* by the thread's clock */
    struct arena *arena; /* decoded texts */
    struct buf out;
    struct buf text;     /* one text without its matches */
    uint32_t keys;       /* that were changed: they must stay different from each other */
    bool changed;
};

static const char *string_end(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++)
        if (*at == '\\' && at + 1 < end)
            at++;
    return at < end ? at + 1 : end;
}

static bool is_key(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
        at++;
    return at < end && *at == ':';
}

static int walk_token(struct walk *walk, struct str token, const char *end)
{
    bool is_string = token.data[0] == '"';
    struct str text = is_string ? json_string(token, walk->arena) : token;

    if (!text.data)
        return -ERR_MEMORY;
    buf_reset(&walk->text);
    if (!replace_matches(walk->one, walk->matcher, text, walk->until_us - cpu_us(),
                         &walk->text)) {
        buf_str(&walk->out, token);
        return 0;
    }
    walk->changed = true;
    if (is_string && is_key(token.data + token.len, end) && walk->keys++ > 0)
        buf_format(&walk->text, "#%u", walk->keys);
    json_write_string(&walk->out, buf_view(&walk->text));
    return 0;
}

static bool starts_number(char c)
{
    return c == '-' || (c >= '0' && c <= '9');
}

static int walk_context(struct walk *walk, struct str context)
{
    const char *at = context.data, *end = context.data + context.len;
    int rc = 0;

    while (at < end && rc == 0) {
        const char *stop = at + 1;

        if (*at == '"')
            stop = string_end(at, end);
        else if (starts_number(*at))
            while (stop < end && (starts_number(*stop) || strchr("+.eE", *stop)))
                stop++;
        if (*at == '"' || starts_number(*at))
            rc = walk_token(walk, str_span(at, (size_t)(stop - at)), end);
        else
            buf_byte(&walk->out, *at);
        at = stop;
    }
    return rc;
}

static struct str as_json(struct str text, struct arena *arena)
{
    BUF_AUTO struct buf out = BUF_INIT(8 * REDACT_REPLACE_BYTES_MAX);
    struct str copy;

    json_write_string(&out, text);
    copy = out.failed ? STR_NONE : arena_str(arena, buf_view(&out));
    return copy;
}

static int redact_context(const struct compiled *one, const struct matcher *matcher,
                          struct str *context, int64_t left_us, struct arena *arena)
{
    struct walk walk = {.one = one, .matcher = matcher, .until_us = cpu_us() + left_us,
                        .arena = arena, .out = BUF_INIT(TEXT_BYTES_MAX),
                        .text = BUF_INIT(TEXT_BYTES_MAX)};
    int rc = walk_context(&walk, *context);

    if (rc == 0 && walk.changed) { /* what has grown beyond all bounds goes as a whole */
        *context = walk.out.failed || walk.text.failed || walk.out.len > BOUND_LOG_LINE_BYTES
                       ? as_json(one->rule->replace, arena)
                       : arena_str(arena, buf_view(&walk.out));
        rc = context->data ? 0 : -ERR_MEMORY;
    }
    buf_deinit(&walk.out);
    buf_deinit(&walk.text);
    return rc;
}

static int redact_pointer(const struct redact_rule *rule, struct str *context,
                          struct arena *arena)
{
    struct str value = json_pointer(*context, rule->pointer, arena);
    struct str instead;
    BUF_AUTO struct buf out = BUF_INIT(TEXT_BYTES_MAX);

    if (!value.data)
        return arena->failed ? -ERR_MEMORY : 0;
    instead = as_json(rule->replace, arena);
    buf_append(&out, context->data, (size_t)(value.data - context->data));
    buf_str(&out, instead);
    buf_append(&out, value.data + value.len,
               context->len - (size_t)(value.data - context->data) - value.len);
    *context = out.failed || !instead.data ? STR_NONE : arena_str(arena, buf_view(&out));
    return context->data ? 0 : -ERR_MEMORY;
}

int redact_line(const struct redact *redact, struct str *message, struct str *context,
                struct arena *arena, int64_t *left_us)
{
    const int64_t until_us = redact ? cpu_us() + *left_us : 0;
    struct matcher matcher;
    int rc;

    if (!redact)
        return 0;
    rc = matcher_init(&matcher) ? 0 : -ERR_MEMORY;
    for (uint32_t i = 0; rc == 0 && i < redact->count; i++) {
        const struct compiled *one = &redact->rules[i];

        if (message->data && one->in_message)
            rc = redact_text(one, &matcher, message, until_us - cpu_us(), arena);
        if (rc == 0 && context->data && one->in_context)
            rc = one->rule->pointer.data ? redact_pointer(one->rule, context, arena)
                                         : redact_context(one, &matcher, context,
                                                          until_us - cpu_us(), arena);
    }
    matcher_deinit(&matcher);
    *left_us = until_us - cpu_us();
    return rc;
}
