/* Single values of a task object: what a text, a URL or a list of texts must look like, each said
 * in a sentence that tells what to do. Which member takes what is spec.c's table.
 * Pure, any thread. */
#include "core/spec/spec_int.h"

#include "core/seal/envelope.h"
#include "core/seal/seal_members.h"

#include "base/clock.h"
#include "core/task/search.h"

int spec_no_memory(struct err *err)
{
    return err_set(err, ERR_MEMORY, "not enough memory for this request; send fewer tasks at once "
                                    "or try again");
}

/* C0, DEL and C1: they break lines, headers and terminals. */
static bool has_control(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];

        if (c < 0x20 || c == 0x7F)
            return true;
        if (c == 0xC2 && i + 1 < text.len && (unsigned char)text.data[i + 1] < 0xA0)
            return true;
    }
    return false;
}

int spec_check_text(struct str text, size_t max, const char *field, struct err *err)
{
    if (text.len == 0)
        return err_set_field(err, ERR_INVALID, field,
                             "\"%s\" must not be empty; leave it out or give it a text", field);
    if (text.len > max)
        return err_set_field(err, ERR_INVALID, field,
                             "\"%s\" has %zu bytes; at most %zu are allowed", field, text.len,
                             max);
    if (has_control(text))
        return err_set_field(err, ERR_INVALID, field,
                             "\"%s\" must not contain control characters", field);
    return 0;
}

int spec_check_queue(struct str name, struct err *err)
{
    int rc = spec_check_text(name, BOUND_NAME_BYTES, "queue", err);

    if (rc == 0 && memchr(name.data, '/', name.len))
        return err_set_field(err, ERR_INVALID, "queue", "\"queue\" must not contain a slash");
    return rc;
}

int spec_check_no_pattern(struct str name, const char *field, struct err *err)
{
    if (!search_is_pattern(name))
        return 0;
    return err_set_field(err, ERR_INVALID, field, "\"%s\" must not begin or end with '*': it is "
                         "one name, and patterns do not work here", field);
}

int spec_check_new_queue(struct str name, struct err *err)
{
    TRY(spec_check_queue(name, err));
    return spec_check_no_pattern(name, "queue", err);
}

int spec_check_bytes(struct str json, size_t max, const char *field, struct err *err)
{
    if (json.len > max)
        return err_set_field(err, ERR_TOO_LARGE, field,
                             "\"%s\" has %zu bytes; at most %zu are allowed, keep larger content "
                             "elsewhere and name it here",
                             field, json.len, max);
    return 0;
}

/* Letters, digits and what else a host, an IPv6 address and a port are written with. */
static bool is_authority(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              strchr(".-_:[]", c)))
            return false;
    }
    return text.len > 0 && text.data[0] != ':';
}

/* Visible ASCII, and no backslash: some clients read one as a slash. */
static bool is_url_bytes(struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] <= 0x20 || text.data[i] >= 0x7F || text.data[i] == '\\')
            return false;
    return true;
}

int spec_check_url(struct str url, const char *field, struct err *err)
{
    struct str rest = STR_NONE;
    size_t host_len = 0;

    if (url.len > BOUND_URL_BYTES)
        return err_set_field(err, ERR_INVALID, field,
                             "\"%s\" has %zu bytes; at most %d are allowed", field, url.len,
                             BOUND_URL_BYTES);
    if (str_starts(url, STR("http://")))
        rest = str_span(url.data + 7, url.len - 7);
    else if (str_starts(url, STR("https://")))
        rest = str_span(url.data + 8, url.len - 8);
    while (host_len < rest.len && !strchr("/?#", rest.data[host_len]))
        host_len++;
    if (!rest.data || !is_url_bytes(url) || !is_authority(str_span(rest.data, host_len)))
        return err_set_field(err, ERR_INVALID, field,
                             "\"%s\" must be an http:// or https:// URL with a host, without user "
                             "or password",
                             field);
    return 0;
}

int spec_read_string(struct str value, const char *field, struct arena *arena, struct str *text,
                     struct err *err)
{
    if (json_kind(value) != JSON_STRING)
        return err_set_field(err, ERR_INVALID, field, "\"%s\" must be a string", field);
    *text = json_string(value, arena);
    return text->data ? 0 : spec_no_memory(err);
}

int spec_read_bool(struct str value, const char *field, bool *to, struct err *err)
{
    enum json_kind kind = json_kind(value);

    if (kind != JSON_TRUE && kind != JSON_FALSE)
        return err_set_field(err, ERR_INVALID, field, "\"%s\" must be true or false", field);
    *to = kind == JSON_TRUE;
    return 0;
}

int spec_read_number(struct str value, const char *field, int64_t min, int64_t max, int64_t *to,
                     struct err *err)
{
    if (!json_int64(value, to) || *to < min || *to > max)
        return err_set_field(err, ERR_INVALID, field,
                             "\"%s\" must be a whole number from %lld to %lld", field,
                             (long long)min, (long long)max);
    return 0;
}

int spec_read_time(struct str value, const char *field, struct arena *arena, int64_t *to_us,
                   struct err *err)
{
    struct str text = json_string(value, arena);

    if (!text.data || !clock_parse(text, to_us) || *to_us < 0)
        return err_set_field(err, ERR_INVALID, field,
                             "\"%s\" must be an RFC 3339 time such as \"2030-01-02T03:04:05Z\", "
                             "from 1970 to 9999",
                             field);
    if (*to_us == 0)
        *to_us = 1;
    return 0;
}

static bool is_listed(const struct str *texts, uint32_t count, struct str text)
{
    for (uint32_t i = 0; i < count; i++)
        if (str_eq(texts[i], text))
            return true;
    return false;
}

/* Reads an array of at most count_max different texts; one that comes again is passed over. */
static int read_texts(struct str value, const char *field, size_t count_max, size_t bytes_max,
                      struct arena *arena, struct str *texts, uint32_t *count, struct err *err)
{
    struct json_iter iter;
    struct str element, text;
    size_t seen = 0;
    int rc;

    *count = 0;
    if (json_kind(value) != JSON_ARRAY)
        return err_set_field(err, ERR_INVALID, field, "\"%s\" must be an array of strings",
                             field);
    json_begin(value, &iter);
    while (json_next_element(&iter, &element)) {
        if (++seen > count_max)
            return err_set_field(err, ERR_INVALID, field, "\"%s\" may have at most %zu entries",
                                 field, count_max);
        rc = spec_read_string(element, field, arena, &text, err);
        if (rc == 0 && bytes_max)
            rc = spec_check_text(text, bytes_max, field, err);
        if (rc < 0)
            return rc;
        if (!is_listed(texts, *count, text))
            texts[(*count)++] = text;
    }
    return 0;
}

/* Stored without white space and with every tag once: a set, not the user's bytes. */
int spec_read_tags(struct str value, struct arena *arena, struct task_input *input,
                   struct err *err)
{
    BUF_AUTO struct buf out = BUF_INIT(BOUND_TAGS * (BOUND_NAME_BYTES * 6 + 3) + 2);
    struct str texts[BOUND_TAGS];
    uint32_t count;

    TRY(read_texts(value, "tags", BOUND_TAGS, BOUND_NAME_BYTES, arena, texts, &count, err));
    if (count == 0)
        return 0;
    buf_byte(&out, '[');
    for (uint32_t i = 0; i < count; i++) {
        json_comma(&out);
        json_write_string(&out, texts[i]);
    }
    buf_byte(&out, ']');
    input->spec.tags = out.failed ? STR_NONE : arena_str(arena, buf_view(&out));
    return input->spec.tags.data ? 0 : spec_no_memory(err);
}

int spec_read_encrypt_fields(struct str value, struct arena *arena, struct task_input *input,
                             struct err *err)
{
    BUF_AUTO struct buf out = BUF_INIT(SEAL_POINTERS_MAX * (SEAL_POINTER_BYTES * 6 + 3) + 2);
    struct str texts[SEAL_POINTERS_MAX];
    uint32_t count;

    TRY(read_texts(value, "encrypt_fields", SEAL_POINTERS_MAX, SEAL_POINTER_BYTES, arena, texts,
                   &count, err));
    buf_byte(&out, '[');
    for (uint32_t i = 0; i < count; i++) {
        if (!json_pointer_valid(texts[i]) || texts[i].len == 0)
            return err_set_field(err, ERR_INVALID, "encrypt_fields",
                                 "\"encrypt_fields\" takes JSON pointers such as "
                                 "\"/card/number\"");
        json_comma(&out);
        json_write_string(&out, texts[i]);
    }
    buf_byte(&out, ']');
    if (count == 0)
        return 0;
    input->spec.seal.fields = out.failed ? STR_NONE : arena_str(arena, buf_view(&out));
    return input->spec.seal.fields.data ? 0 : spec_no_memory(err);
}

int spec_read_hash_fields(struct str value, struct arena *arena, struct task_input *input,
                          struct err *err)
{
    struct str texts[SPEC_HASH_FIELDS_MAX] = {{0}};
    uint32_t count = 0;

    TRY(read_texts(value, "hash_fields", SPEC_HASH_FIELDS_MAX, 0, arena, texts, &count, err));
    if (count == 0)
        return err_set_field(err, ERR_INVALID, "hash_fields",
                             "\"hash_fields\" names nothing, so that all tasks would be equal; "
                             "leave it out or name a part such as \"/order/id\"");
    for (uint32_t i = 0; i < count; i++)
        if (texts[i].len > BOUND_KEY_BYTES || !json_pointer_valid(texts[i]))
            return err_set_field(err, ERR_INVALID, "hash_fields",
                                 "\"hash_fields\" takes JSON pointers of at most %d bytes such as "
                                 "\"/order/id\"",
                                 BOUND_KEY_BYTES);
    input->hash_fields = arena_copy(arena, texts, count * sizeof *texts);
    input->hash_fields_count = count;
    return input->hash_fields ? 0 : spec_no_memory(err);
}
