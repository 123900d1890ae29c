/* json_check: the one place where foreign JSON is judged. A single pass, without recursion: what
 * each open bracket is stands in an array, and keys lie on one stack (json_keys.c) until their
 * object closes. Everything that reads JSON elsewhere may therefore trust its form. Any thread; no
 * state. */
#include "base/json_int.h"

#define BYTES_MAX INT32_MAX   /* offsets and key lengths are kept in 31 bits */
#define NUMBER_LEN_SAFE 300   /* so many characters without an exponent fit a double */

struct checker {
    const char *start;
    const char *at;
    const char *end;
    struct err *err;
    uint32_t depth;
    uint32_t depth_max;
    bool objects[JSON_DEPTH_OURS]; /* is the bracket at this depth an object's? */
    uint32_t first_key[JSON_DEPTH_OURS];
    struct json_keys keys;
};

static int refuse(struct checker *checker, const char *why)
{
    return err_set(checker->err, ERR_MALFORMED, "the JSON is malformed at byte %zu: %s",
                   (size_t)(checker->at - checker->start), why);
}

static int refuse_memory(struct checker *checker)
{
    return err_no_memory(checker->err);
}

static int check_escape(struct checker *checker)
{
    const char *at = checker->at;
    const char *end = checker->end;
    int unit;

    if (end - at >= 2 && at[1] != '\0' && strchr("\"\\/bfnrt", at[1])) {
        checker->at += 2;
        return 0;
    }
    if (end - at < 6 || at[1] != 'u' || (unit = json_hex4(at + 2)) < 0)
        return refuse(checker, "a backslash must begin one of the escapes of RFC 8259");
    if (unit == 0)
        return refuse(checker, "the character U+0000 is not allowed");
    checker->at += 6;
    if (unit < 0xD800 || unit > 0xDFFF)
        return 0;
    at += 6;
    if (unit <= 0xDBFF && end - at >= 6 && at[0] == '\\' && at[1] == 'u') {
        unit = json_hex4(at + 2);
        if (unit >= 0xDC00 && unit <= 0xDFFF) {
            checker->at += 6;
            return 0;
        }
    }
    checker->at -= 6;
    return refuse(checker, "a surrogate escape needs its other half beside it");
}

/* From behind the opening quote to behind the closing one. */
static int check_string(struct checker *checker, bool *escaped)
{
    const char *end = checker->end;

    *escaped = false;
    for (;;) {
        unsigned char c;
        size_t step;

        checker->at = json_plain_end(checker->at, end);
        if (checker->at == end)
            return refuse(checker, "a string has no closing quote");
        c = (unsigned char)*checker->at;
        if (c == '"') {
            checker->at++;
            return 0;
        }
        if (c == '\\') {
            int rc = check_escape(checker);

            if (rc < 0)
                return rc;
            *escaped = true;
            continue;
        }
        if (c < 0x20)
            return refuse(checker, "a control character in a string must be escaped");
        step = str_utf8_step(checker->at, (size_t)(end - checker->at));
        if (step == 0)
            return refuse(checker, "the bytes are not valid UTF-8");
        checker->at += step;
    }
}

/* Over at least one digit. */
static bool skip_digits(struct checker *checker)
{
    const char *first = checker->at;

    while (checker->at < checker->end && json_is_digit(*checker->at))
        checker->at++;
    return checker->at > first;
}

static bool skip_byte(struct checker *checker, char byte)
{
    if (checker->at == checker->end || *checker->at != byte)
        return false;
    checker->at++;
    return true;
}

static int check_number(struct checker *checker)
{
    const char *first = checker->at;
    bool exponent;

    (void)skip_byte(checker, '-');
    if (!skip_byte(checker, '0') && !skip_digits(checker))
        return refuse(checker, "a digit must follow the minus");
    if (skip_byte(checker, '.') && !skip_digits(checker))
        return refuse(checker, "a digit must follow the decimal point");
    exponent = skip_byte(checker, 'e') || skip_byte(checker, 'E');
    if (exponent) {
        if (!skip_byte(checker, '+'))
            (void)skip_byte(checker, '-');
        if (!skip_digits(checker))
            return refuse(checker, "a digit must follow the exponent sign");
    }
    if ((exponent || checker->at - first > NUMBER_LEN_SAFE) &&
        json_number_overflows(str_span(first, (size_t)(checker->at - first)))) {
        checker->at = first;
        return refuse(checker, "the number is outside the range of a double");
    }
    return 0;
}

static int check_word(struct checker *checker, struct str word)
{
    if (!str_starts(str_span(checker->at, (size_t)(checker->end - checker->at)), word))
        return refuse(checker, "only true, false and null may stand without quotes");
    checker->at += word.len;
    return 0;
}

static int open_bracket(struct checker *checker, bool object)
{
    if (checker->depth == checker->depth_max)
        return refuse(checker, "it is nested too deeply");
    checker->objects[checker->depth] = object;
    checker->first_key[checker->depth++] = checker->keys.count;
    checker->at++;
    return 0;
}

/* A scalar as a whole, or only the opening bracket (*opened) of an object or array. */
static int check_value(struct checker *checker, bool *opened)
{
    bool escaped;

    *opened = false;
    checker->at = json_skip_space(checker->at, checker->end);
    if (checker->at == checker->end)
        return refuse(checker, "it ends where a value is expected");
    switch (*checker->at) {
    case '"':
        checker->at++;
        return check_string(checker, &escaped);
    case '{':
    case '[':
        *opened = true;
        return open_bracket(checker, *checker->at == '{');
    case 't':
        return check_word(checker, STR("true"));
    case 'f':
        return check_word(checker, STR("false"));
    case 'n':
        return check_word(checker, STR("null"));
    default:
        if (*checker->at != '-' && !json_is_digit(*checker->at))
            return refuse(checker, "a value is expected");
        return check_number(checker);
    }
}

static bool in_object(const struct checker *checker)
{
    return checker->objects[checker->depth - 1];
}

/* A key and its colon. */
static int check_key(struct checker *checker)
{
    const char *key;
    bool escaped;
    int rc;

    checker->at = json_skip_space(checker->at, checker->end);
    if (!skip_byte(checker, '"'))
        return refuse(checker, "a key in quotes is expected");
    key = checker->at;
    TRY(check_string(checker, &escaped));
    rc = json_keys_push(&checker->keys, key, (size_t)(checker->at - 1 - key), escaped);
    if (rc < 0)
        return refuse_memory(checker);
    checker->at = json_skip_space(checker->at, checker->end);
    if (!skip_byte(checker, ':'))
        return refuse(checker, "a colon is expected behind a key");
    return 0;
}

static int close_bracket(struct checker *checker)
{
    uint32_t again;
    int rc;

    checker->at++;
    checker->depth--;
    rc = json_keys_close(&checker->keys, checker->first_key[checker->depth], &again);
    if (rc < 0)
        return refuse_memory(checker);
    if (rc == 1) {
        checker->at = checker->start + again;
        return refuse(checker, "an object has this key twice");
    }
    return 0;
}

/* Behind an opening bracket: closes it at once (and clears *opened), or reads the first key. */
static int check_opened(struct checker *checker, bool *opened)
{
    bool object = in_object(checker);

    checker->at = json_skip_space(checker->at, checker->end);
    if (checker->at < checker->end && *checker->at == (object ? '}' : ']')) {
        *opened = false;
        return close_bracket(checker);
    }
    return object ? check_key(checker) : 0;
}

/* Behind a value: closes what closes here; then nothing is open, or another value is due. */
static int check_behind(struct checker *checker)
{
    while (checker->depth > 0) {
        bool object = in_object(checker);

        checker->at = json_skip_space(checker->at, checker->end);
        if (skip_byte(checker, ','))
            return object ? check_key(checker) : 0;
        if (checker->at == checker->end)
            return refuse(checker, "it ends before its last bracket is closed");
        if (*checker->at != (object ? '}' : ']'))
            return refuse(checker, object ? "a comma or } is expected"
                                          : "a comma or ] is expected");
        TRY(close_bracket(checker));
    }
    return 0;
}

static int check_document(struct checker *checker)
{
    do {
        bool opened;

        TRY(check_value(checker, &opened));
        if (opened)
            TRY(check_opened(checker, &opened));
        if (!opened)
            TRY(check_behind(checker));
    } while (checker->depth > 0);
    return 0;
}

int json_check_within(struct str text, uint32_t depth_max, struct str *trimmed, struct err *err)
{
    struct checker checker; /* not zeroed: json_keys.local is large and written before it is read */
    const char *first;
    const char *last;
    int rc;

    if (text.len > BYTES_MAX)
        return err_set(err, ERR_TOO_LARGE, "the JSON is longer than %d bytes", BYTES_MAX);
    checker.start = text.data ? text.data : "";
    checker.end = checker.start + text.len;
    checker.at = first = json_skip_space(checker.start, checker.end);
    checker.err = err;
    checker.depth = 0;
    checker.depth_max = depth_max < JSON_DEPTH_OURS ? depth_max : JSON_DEPTH_OURS;
    json_keys_init(&checker.keys, text);
    rc = check_document(&checker);
    last = checker.at;
    if (rc == 0) {
        checker.at = json_skip_space(last, checker.end);
        if (checker.at < checker.end)
            rc = refuse(&checker, "nothing may follow the value");
    }
    if (rc == 0 && trimmed)
        *trimmed = str_span(first, (size_t)(last - first));
    json_keys_deinit(&checker.keys);
    return rc;
}

int json_check(struct str text, struct str *trimmed, struct err *err)
{
    return json_check_within(text, JSON_DEPTH_MAX, trimmed, err);
}

int json_check_ours(struct str text, struct str *trimmed, struct err *err)
{
    return json_check_within(text, JSON_DEPTH_OURS, trimmed, err);
}
