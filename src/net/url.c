/* Decoding of URLs. Text without escapes is handed on as it is, checked but not copied. */
#include "net/url.h"

#include "base/hash.h"

static bool has_escapes(struct str raw, bool plus_is_space)
{
    return raw.len && (memchr(raw.data, '%', raw.len) ||
                       (plus_is_space && memchr(raw.data, '+', raw.len)));
}

static int unescape(struct str raw, bool plus_is_space, char *out, size_t *out_len,
                    struct err *err)
{
    size_t len = 0;

    for (size_t i = 0; i < raw.len; i++) {
        char c = raw.data[i];

        if (c == '%') {
            int high = i + 2 < raw.len ? hash_hex_digit(raw.data[i + 1]) : -1;
            int low = i + 2 < raw.len ? hash_hex_digit(raw.data[i + 2]) : -1;

            if (high < 0 || low < 0)
                return err_set(err, ERR_MALFORMED,
                               "the URL has a %% that two hexadecimal digits do not follow");
            c = (char)(high * 16 + low);
            i += 2;
        } else if (c == '+' && plus_is_space) {
            c = ' ';
        }
        out[len++] = c;
    }
    *out_len = len;
    return 0;
}

static int decode(struct str raw, bool plus_is_space, struct arena *arena, struct str *out,
                  struct err *err)
{
    char *text;
    size_t len = 0;

    *out = raw.data ? raw : STR("");
    if (has_escapes(raw, plus_is_space)) {
        text = TRY_MEMORY(arena_alloc(arena, raw.len + 1));
        TRY(unescape(raw, plus_is_space, text, &len, err));
        *out = str_span(text, len);
    }
    if (!str_is_utf8(*out))
        return err_set(err, ERR_MALFORMED, "the URL is not UTF-8 or holds a NUL");
    return 0;
}

int url_decode_segment(struct str raw, struct arena *arena, struct str *out, struct err *err)
{
    return decode(raw, false, arena, out, err);
}

/* Decodes a name or value of a query (`+` is a space). */
static int decode_parameter(struct str raw, struct arena *arena, struct str *out, struct err *err)
{
    return decode(raw, true, arena, out, err);
}

bool url_next_segment(struct str *path, struct str *segment)
{
    const char *slash;
    size_t len;

    if (path->len == 0 || path->data[0] != '/')
        return false;
    path->data++;
    path->len--;
    slash = path->len ? memchr(path->data, '/', path->len) : NULL;
    len = slash ? (size_t)(slash - path->data) : path->len;
    *segment = str_span(path->data, len);
    path->data += len;
    path->len -= len;
    return true;
}

/* Cuts the next piece between ampersands off *rest. */
static struct str next_piece(struct str *rest)
{
    const char *end = memchr(rest->data, '&', rest->len);
    size_t len = end ? (size_t)(end - rest->data) : rest->len;
    struct str piece = str_span(rest->data, len);
    size_t step = end ? len + 1 : len;

    rest->data += step;
    rest->len -= step;
    return piece;
}

int url_query_next(struct url_query *query, struct arena *arena, struct str *name,
                   struct str *value, struct err *err)
{
    struct str piece = STR_NONE;
    const char *equals;
    int rc;

    while (query->rest.len && piece.len == 0)
        piece = next_piece(&query->rest);
    if (piece.len == 0)
        return 0;
    if (++query->seen_count > URL_PARAMETERS_MAX)
        return err_set(err, ERR_MALFORMED, "the URL has more than %d parameters",
                       URL_PARAMETERS_MAX);
    equals = memchr(piece.data, '=', piece.len);
    *value = STR_NONE;
    if (equals) {
        size_t name_len = (size_t)(equals - piece.data);

        TRY(decode_parameter(str_span(equals + 1, piece.len - name_len - 1), arena, value, err));
        piece.len = name_len;
    }
    rc = decode_parameter(piece, arena, name, err);
    return rc < 0 ? rc : 1;
}
