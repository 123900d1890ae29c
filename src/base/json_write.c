/* Writing JSON by appending to a buf. Any bytes come out as a valid string that json_check accepts;
 * brackets are the caller's, and commas where no key follows. Any thread; no state. */
#include "base/json_int.h"

#define REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD in UTF-8 */

void json_write_escape(struct buf *out, uint32_t character)
{
    static const char hex[] = "0123456789abcdef";
    static const char letters[] = "btn?fr"; /* from U+0008 on */

    buf_byte(out, '\\');
    if (character == '"' || character == '\\') {
        buf_byte(out, (char)character);
        return;
    }
    if (character >= 8 && character <= 13 && character != 11) {
        buf_byte(out, letters[character - 8]);
        return;
    }
    buf_text(out, "u00");
    buf_byte(out, hex[character >> 4]);
    buf_byte(out, hex[character & 15]);
}

/* One special character; returns its bytes. */
static size_t write_special(struct buf *out, const char *at, size_t left)
{
    unsigned char c = (unsigned char)*at;
    size_t step = str_utf8_step(at, left);

    if (step == 0 || c == 0)
        buf_text(out, REPLACEMENT);
    else if (c < 0x80)
        json_write_escape(out, c);
    else if (c == 0xC2 && (unsigned char)at[1] < 0xA0)
        json_write_escape(out, (unsigned char)at[1]);
    else
        buf_append(out, at, step);
    return step ? step : 1;
}

void json_write_string(struct buf *out, struct str text)
{
    const char *at = text.data ? text.data : "";
    const char *end = at + text.len;

    buf_byte(out, '"');
    while (at < end) {
        const char *special = json_plain_end(at, end);

        buf_append(out, at, (size_t)(special - at));
        at = special;
        if (at < end)
            at += write_special(out, at, (size_t)(end - at));
    }
    buf_byte(out, '"');
}

void json_comma(struct buf *out)
{
    char last = out->len ? out->data[out->len - 1] : '{';

    if (last != '{' && last != '[' && last != ',')
        buf_byte(out, ',');
}

void json_write_key(struct buf *out, const char *key)
{
    json_comma(out);
    json_write_string(out, str_of(key));
    buf_byte(out, ':');
}

void json_write_member_string(struct buf *out, const char *key, struct str text)
{
    json_write_key(out, key);
    if (text.data)
        json_write_string(out, text);
    else
        buf_text(out, "null");
}
