/* POSIX extended patterns on messages and on the texts and numbers inside of contexts, compared as
 * they are meant, not as they are escaped. What cannot be bounded is refused: back-references,
 * repeats of repeats, what is slow on a trial. Where a text has more matches, or takes more time,
 * than a line is worth, all of its rest is taken out. Pure but for the processor's clock, any
 * thread. */
#include "core/log/redact.h"

#include "base/json.h"
#include "core/bounds.h"

#include <regex.h>
#include <stdio.h>
#include <time.h>

#define TEXT_BYTES_MAX (4 * (BOUND_LOG_LINE_BYTES + REDACT_MARGIN_BYTES))
#define WINDOW_BYTES 4096

struct compiled {
    const struct redact_rule *rule;
    regex_t regex; /* of a pattern */
    regex_t any;   /* whether there is a match from here on, anywhere: takes time in proportion */
    bool in_message, in_context;
};

struct redact {
    uint32_t count;
    struct compiled rules[];
};

/* Of this thread: a busy machine must not make lines disappear. */
static int64_t cpu_us(void)
{
    struct timespec time;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * INT64_C(1000000) + time.tv_nsec / 1000;
}

/* ---- rules ---- */

/* Behind the ']' of a bracket expression that begins here. */
static size_t bracket_end(struct str pattern, size_t at)
{
    at += at + 1 < pattern.len && pattern.data[at + 1] == '^' ? 2 : 1;
    if (at < pattern.len && pattern.data[at] == ']')
        at++;
    for (; at < pattern.len && pattern.data[at] != ']'; at++) {
        char kind = at + 1 < pattern.len ? pattern.data[at + 1] : '\0';

        if (pattern.data[at] != '[' || !kind || !strchr(":.=", kind))
            continue;
        for (at += 2; at + 1 < pattern.len &&
                      (pattern.data[at] != kind || pattern.data[at + 1] != ']'); at++)
            ;
        at++;
    }
    return at + 1;
}

/* How often what stands before is copied: the largest number of {n} and {n,m}, with *at moved to
 * the '}'. */
static int64_t repeats_at(struct str pattern, size_t *at)
{
    int64_t number = 0, largest = 1;

    if (pattern.data[*at] != '{')
        return 1;
    while (++*at < pattern.len && pattern.data[*at] != '}') {
        char c = pattern.data[*at];

        number = c >= '0' && c <= '9' && number < 100000 ? number * 10 + (c - '0') : 0;
        largest = number > largest ? number : largest;
    }
    return largest;
}

/* A '+' copies the group before it: inside each other they double it every time. */
static int check_repeats(struct str pattern, struct err *err)
{
    int64_t product = 1;
    int doubled = 0;
    char before = '\0'; /* what ended last: a repeat, a group, or else */

    for (size_t at = 0; at < pattern.len; at++) {
        char c = pattern.data[at];

        if (c == '\\' || c == '[') {
            at = c == '[' ? bracket_end(pattern, at) - 1 : at + 1;
            before = '\0';
            continue;
        }
        if (before == '+' && (c == '+' || c == '*' || c == '?' || c == '{'))
            return err_set(err, ERR_INVALID, "a pattern must not repeat a repeat (%c behind "
                           "another); write (…) around the first", c);
        doubled += before == ')' && c == '+';
        product *= repeats_at(pattern, &at);
        if (product > REDACT_REPEATS_MAX || doubled > REDACT_DOUBLED_MAX)
            return err_set(err, ERR_INVALID, "a pattern must not repeat more than %d times in all, "
                           "nor more than %d groups by +", REDACT_REPEATS_MAX, REDACT_DOUBLED_MAX);
        before = c == '*' || c == '?' || c == '{' ? '+' : c;
    }
    return 0;
}

/* No back-references: how long they take nobody can bound. */
static int check_pattern(struct str pattern, struct err *err)
{
    for (size_t i = 0; i + 1 < pattern.len; i++)
        if (pattern.data[i] == '\\') {
            char next = pattern.data[++i];

            if (next >= '1' && next <= '9')
                return err_set(err, ERR_INVALID, "a pattern must not refer back (\\%c): how long "
                               "that takes is not bounded", next);
        }
    return check_repeats(pattern, err);
}

/* A ')' that closes nothing is a character to some; inside of a group (compile_both) it is not. */
static int check_groups(struct str pattern, struct err *err)
{
    int depth = 0;

    for (size_t at = 0; at < pattern.len && depth >= 0;) {
        char c = pattern.data[at];

        depth += (c == '(') - (c == ')');
        at = c == '[' ? bracket_end(pattern, at) : at + (c == '\\' ? 2 : 1);
    }
    return depth >= 0 ? 0 : err_set(err, ERR_INVALID, "a ')' of the pattern closes nothing; write "
                                    "\\) for the character");
}

/* The fastest of some times: on a busy machine also the thread's own clock jumps. */
static int64_t match_cost_us(const regex_t *regex, const char *text)
{
    int64_t cost_us = 0;

    for (int i = 0; i < 3; i++) {
        regmatch_t match = {.rm_so = 0, .rm_eo = WINDOW_BYTES};
        int64_t began_us = cpu_us(), took_us;

        regexec(regex, text, 1, &match, REG_STARTEND);
        took_us = cpu_us() - began_us;
        cost_us = i && cost_us < took_us ? cost_us : took_us;
        if (cost_us <= REDACT_TRIAL_CPU_US_MAX || cost_us > 8 * REDACT_TRIAL_CPU_US_MAX)
            break;
    }
    return cost_us;
}

/* What is slow on one of these would be slow on somebody's log. */
static int try_pattern(const regex_t *regex, struct err *err)
{
    static const char *const pieces[] = {"a", "ab", "0", "a1 ", "xyz@", "{\"a\":1},", ".-"};
    char text[WINDOW_BYTES + 1];

    text[WINDOW_BYTES] = '\0';
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        for (size_t at = 0; at < WINDOW_BYTES; at++)
            text[at] = pieces[i][at % strlen(pieces[i])];
        if (match_cost_us(regex, text) > REDACT_TRIAL_CPU_US_MAX)
            return err_set(err, ERR_INVALID, "the pattern takes too long on a text of %d bytes; "
                           "say what comes before and behind it more exactly", WINDOW_BYTES);
    }
    return 0;
}

static int compile(const struct redact_rule *rule, const char *before, const char *behind,
                   int flags, regex_t *regex, struct err *err)
{
    char text[REDACT_PATTERN_BYTES_MAX + 32];
    char why[160];
    int rc;

    if (rule->pattern.len == 0 || rule->pattern.len > REDACT_PATTERN_BYTES_MAX)
        return err_set(err, ERR_INVALID, "a pattern has 1 to %d bytes", REDACT_PATTERN_BYTES_MAX);
    TRY(check_pattern(rule->pattern, err));
    TRY(check_groups(rule->pattern, err));
    snprintf(text, sizeof text, "%s" STR_FMT "%s", before, STR_ARG(rule->pattern), behind);
    rc = regcomp(regex, text, REG_EXTENDED | flags);
    if (rc == 0)
        return 0;
    regerror(rc, regex, why, sizeof why);
    return rc == REG_ESPACE
               ? err_set(err, ERR_INVALID, "the pattern '%.200s' is too large to be compiled", text)
               : err_set(err, ERR_INVALID, "the pattern '%.200s' is no extended regular "
                         "expression: %s", text, why);
}

static bool names_field(const struct redact_rule *rule, const char *field)
{
    for (uint32_t i = 0; i < rule->fields_count; i++)
        if (str_is(rule->fields[i], field))
            return true;
    return rule->fields_count == 0;
}

int redact_rule_check(const struct redact_rule *rule, struct err *err)
{
    regex_t regex;
    int rc;

    if (!rule->pattern.data == !rule->pointer.data)
        return err_set(err, ERR_INVALID, "a rule of redact has a pattern or a pointer, one of "
                       "them");
    if (rule->replace.len > REDACT_REPLACE_BYTES_MAX)
        return err_set(err, ERR_INVALID, "replace has at most %d bytes", REDACT_REPLACE_BYTES_MAX);
    for (uint32_t i = 0; i < rule->fields_count; i++)
        if (!str_is(rule->fields[i], "message") && !str_is(rule->fields[i], "context"))
            return err_set(err, ERR_INVALID, "fields are message and context, not '" STR_FMT "'",
                           STR_ARG(rule->fields[i]));
    if (rule->pointer.data)
        return rule->pointer.len > 0 && json_pointer_valid(rule->pointer)
                   ? 0 : err_set(err, ERR_INVALID, "pointer must be a JSON pointer such as "
                                 "/user/email");
    TRY(compile(rule, "", "", 0, &regex, err));
    rc = try_pattern(&regex, err);
    regfree(&regex);
    return rc;
}

static int compile_both(struct compiled *one, struct err *err)
{
    TRY(compile(one->rule, "", "", 0, &one->regex, err));
    if (compile(one->rule, "([^a]|a)*(", ")", REG_NOSUB, &one->any, err) == 0)
        return 0;
    regfree(&one->regex);
    return -(int)err->code;
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
        if (redact_rule_check(&rules[i], err) < 0 ||
            (rules[i].pattern.data && compile_both(one, err) < 0)) {
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
        if (redact->rules[i].rule->pattern.data) {
            regfree(&redact->rules[i].regex);
            regfree(&redact->rules[i].any);
        }
    free(redact);
}

/* ---- texts ---- */

static bool is_inside_character(struct str text, size_t at)
{
    return at < text.len && ((unsigned char)text.data[at] & 0xC0) == 0x80;
}

/* Whoever searches for the place of a match begins anew at every byte; where there is none, which
 * is most of all texts, one pass says so. (It locks by itself and changes nothing one sees.) */
static bool has_match(const struct compiled *one, struct str text, size_t from, size_t stop)
{
    return re_match((regex_t *)(uintptr_t)&one->any, text.data, (regoff_t)stop, (regoff_t)from,
                    NULL) != -1;
}

/* The first match that is not empty, in the window from `from` to `stop`; whole characters, as
 * patterns see bytes. */
static bool find_match(const struct compiled *one, struct str text, size_t from, size_t stop,
                       size_t *begin, size_t *end)
{
    if (!has_match(one, text, from, stop))
        return false;
    for (size_t at = from; at < stop; at = *begin + 1) {
        regmatch_t match = {.rm_so = (regoff_t)at, .rm_eo = (regoff_t)stop};
        int flags = REG_STARTEND | (at ? REG_NOTBOL : 0) | (stop < text.len ? REG_NOTEOL : 0);

        if (regexec(&one->regex, text.data, 1, &match, flags) != 0)
            return false;
        *begin = (size_t)match.rm_so;
        *end = (size_t)match.rm_eo;
        if (*end == *begin)
            continue;
        while (*begin > from && is_inside_character(text, *begin))
            --*begin;
        while (is_inside_character(text, *end))
            ++*end;
        return true;
    }
    return false;
}

/* Appends the text without its matches, window by window: what a pattern costs may grow with the
 * square of what it looks at. False when there are none, and then what was appended is the text. */
static bool replace_matches(const struct compiled *one, struct str text, int64_t left_us,
                            struct buf *out)
{
    const int64_t until_us = cpu_us() + (left_us < REDACT_CPU_US_MAX ? left_us : REDACT_CPU_US_MAX);
    size_t from = 0, begin, end;
    uint32_t matches = 0;

    while (from < text.len) {
        size_t stop = text.len - from > WINDOW_BYTES ? from + WINDOW_BYTES : text.len;
        bool found = find_match(one, text, from, stop, &begin, &end);

        if (!found) /* one that begins in the second half may go on behind the window */
            begin = end = stop < text.len ? stop - WINDOW_BYTES / 2 : stop;
        else if (end >= stop && stop < text.len && begin > from)
            end = begin; /* the same again, with a window of its own */
        buf_append(out, text.data + from, begin - from);
        if (end > begin) {
            buf_str(out, one->rule->replace);
            matches++;
        }
        from = end;
        if (from < text.len && (matches == REDACT_MATCHES_MAX || cpu_us() > until_us)) {
            buf_str(out, one->rule->replace); /* the rest goes */
            return true;
        }
    }
    return matches > 0;
}

static int redact_text(const struct compiled *one, struct str *text, int64_t left_us,
                       struct arena *arena)
{
    struct buf out = BUF_INIT(TEXT_BYTES_MAX);
    struct str ended = arena_str(arena, *text); /* sanitizers look for its end */
    int rc = ended.data ? 0 : -ERR_MEMORY;

    if (rc == 0 && replace_matches(one, ended, left_us, &out)) {
        *text = out.failed ? one->rule->replace : arena_str(arena, buf_view(&out));
        rc = text->data ? 0 : -ERR_MEMORY;
    }
    buf_deinit(&out);
    return rc;
}

/* ---- contexts ---- */

struct walk {
    const struct compiled *one;
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

    if (text.data)
        text = arena_str(walk->arena, text); /* with an end */
    if (!text.data)
        return -ERR_MEMORY;
    buf_reset(&walk->text);
    if (!replace_matches(walk->one, text, walk->until_us - cpu_us(), &walk->text)) {
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
    struct buf out = BUF_INIT(8 * REDACT_REPLACE_BYTES_MAX);
    struct str copy;

    json_write_string(&out, text);
    copy = out.failed ? STR_NONE : arena_str(arena, buf_view(&out));
    buf_deinit(&out);
    return copy;
}

static int redact_context(const struct compiled *one, struct str *context, int64_t left_us,
                          struct arena *arena)
{
    struct walk walk = {.one = one, .until_us = cpu_us() + left_us, .arena = arena,
                        .out = BUF_INIT(TEXT_BYTES_MAX), .text = BUF_INIT(TEXT_BYTES_MAX)};
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
    struct buf out = BUF_INIT(TEXT_BYTES_MAX);

    if (!value.data)
        return arena->failed ? -ERR_MEMORY : 0;
    instead = as_json(rule->replace, arena);
    buf_append(&out, context->data, (size_t)(value.data - context->data));
    buf_str(&out, instead);
    buf_append(&out, value.data + value.len,
               context->len - (size_t)(value.data - context->data) - value.len);
    *context = out.failed || !instead.data ? STR_NONE : arena_str(arena, buf_view(&out));
    buf_deinit(&out);
    return context->data ? 0 : -ERR_MEMORY;
}

int redact_line(const struct redact *redact, struct str *message, struct str *context,
                struct arena *arena, int64_t *left_us)
{
    const int64_t until_us = redact ? cpu_us() + *left_us : 0;
    int rc = 0;

    for (uint32_t i = 0; redact && rc == 0 && i < redact->count; i++) {
        const struct compiled *one = &redact->rules[i];

        if (message->data && one->in_message)
            rc = redact_text(one, message, until_us - cpu_us(), arena);
        if (rc == 0 && context->data && one->in_context)
            rc = one->rule->pointer.data ? redact_pointer(one->rule, context, arena)
                                         : redact_context(one, context,
                                                          until_us - cpu_us(), arena);
    }
    if (redact)
        *left_us = until_us - cpu_us();
    return rc;
}
