/* Records as JSON: {"serial":7,"previous":HASH,"at":TIME,"kind":"heads","lines":N,"key":KEY,
 * "items":[[EXECUTION,SEQ,HASH,LINES],...]}; behind that, of heads of ended executions "closed",
 * of cuts AT,WINDOW (microseconds, milliseconds), of blanks LEVEL,AT,WINDOW and no hash, of what a
 * trim repeats of refused ones "refused". A last one may follow AT,WINDOW: of heads the hash of the
 * line before the first of their lines, or "written" where the node that wrote them remembered it;
 * of cuts the last line that a record names. Hash and signature are over exactly these bytes. Pure,
 * any thread. */
#include "core/log/loganchor.h"

#include "base/clock.h"
#include "base/hash.h"

static const char *const kind_words[ANCHOR_KIND_COUNT] = {"heads", "cuts", "seam", "trim",
                                                          "blanks", "begin", "refused"};
#define CLOSED "closed"
#define REFUSED "refused"
#define WRITTEN "written"

static void write_hex(struct buf *out, const char *name, const uint8_t *data, size_t len)
{
    char hex[2 * 64 + 1];

    hash_hex(data, len, hex);
    buf_format(out, ",\"%s\":\"%s\"", name, hex);
}

/* The hash is empty where there was none, and of lines that were emptied: it is still theirs. */
static void write_item(struct buf *out, const struct log_part *item)
{
    const char *word = item->emptied   ? severity_word(item->level)
                       : item->refused ? REFUSED
                       : item->closed  ? CLOSED
                                       : NULL;
    bool last = item->follows || item->based || item->written;
    char id[UUID_TEXT_BYTES];
    char hex[HASH_HEX_BYTES + 1] = "";

    uuid_format(&item->head.execution_id, id);
    if (item->head.hashed)
        hash_hex(item->head.hash, sizeof item->head.hash, hex);
    buf_format(out, "[\"%s\",%lld,\"%s\"", id, (long long)item->head.seq, hex);
    if (item->lines > 0 || word || item->at_us || last)
        buf_format(out, ",%lld", (long long)item->lines);
    if (word)
        buf_format(out, ",\"%s\"", word);
    if (item->at_us || last)
        buf_format(out, ",%lld,%lld", (long long)item->at_us, (long long)item->window_ms);
    if (item->follows) {
        hash_hex(item->from, sizeof item->from, hex);
        buf_format(out, ",\"%s\"", hex);
    } else if (item->based) {
        buf_format(out, ",%lld", (long long)item->base);
    } else if (item->written) {
        buf_text(out, ",\"" WRITTEN "\"");
    }
    buf_byte(out, ']');
}

static void write_record(struct buf *out, const struct anchor *anchor,
                         const struct log_part *items, uint32_t count)
{
    char at[CLOCK_TEXT_BYTES];

    clock_format(anchor->at_us, at);
    buf_format(out, "{\"serial\":%lld", (long long)anchor->serial);
    write_hex(out, "previous", anchor->previous, sizeof anchor->previous);
    buf_format(out, ",\"at\":\"%s\",\"kind\":\"%s\",\"lines\":%lld", at, kind_words[anchor->kind],
               (long long)anchor->lines);
    if (anchor->has_since)
        buf_format(out, ",\"since\":%lld", (long long)anchor->since_us);
    if (anchor->begin)
        buf_format(out, ",\"begin\":%lld", (long long)anchor->begin);
    if (anchor->kind == ANCHOR_SEAM || anchor->kind == ANCHOR_TRIM) {
        buf_format(out, ",\"through\":%lld", (long long)anchor->through);
        write_hex(out, "through_hash", anchor->through_hash, sizeof anchor->through_hash);
    }
    if (anchor->reason.data)
        json_write_member_string(out, "reason", anchor->reason);
    if (anchor->is_signed)
        write_hex(out, "key", anchor->key, sizeof anchor->key);
    buf_text(out, ",\"items\":[");
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0)
            buf_byte(out, ',');
        write_item(out, &items[i]);
    }
    buf_text(out, "]}");
}

int anchor_make(struct anchor *anchor, const struct log_part *items, uint32_t count,
                const struct sign_key *key, struct buf *out, struct anchor_row *row)
{
    uint8_t signature[SIGN_BYTES];
    size_t begin = out->len;

    anchor->is_signed = key != NULL;
    if (key)
        sign_key_public(key, anchor->key);
    write_record(out, anchor, items, count);
    if (out->failed)
        return -ERR_MEMORY;
    *row = (struct anchor_row){.serial = anchor->serial, .created_at_us = anchor->at_us};
    row->record = str_span(out->data + begin, out->len - begin);
    if (hash_sha256(row->record, anchor->hash) < 0)
        return -ERR_MEMORY;
    hash_hex(anchor->hash, sizeof anchor->hash, row->hash);
    if (key) {
        sign_make(key, row->record, signature);
        hash_hex(signature, sizeof signature, row->signature);
    }
    return 0;
}

static struct str plain_text(struct str value)
{
    if (value.len < 2 || json_kind(value) != JSON_STRING)
        return STR_NONE;
    return str_span(value.data + 1, value.len - 2); /* what is meant here never needs escapes */
}

static bool get_hex(struct str object, const char *name, uint8_t *out, size_t len)
{
    return hash_from_hex(plain_text(json_get(object, str_of(name))), out, len);
}

static bool get_number(struct str object, const char *name, int64_t *out)
{
    return json_int64(json_get(object, str_of(name)), out);
}

static bool get_kind(struct str object, enum anchor_kind *out)
{
    struct str word = plain_text(json_get(object, STR("kind")));

    for (int i = 0; i < ANCHOR_KIND_COUNT; i++)
        if (str_is(word, kind_words[i])) {
            *out = (enum anchor_kind)i;
            return true;
        }
    return false;
}

bool anchor_parse(struct str record, struct anchor *anchor)
{
    bool through;

    *anchor = (struct anchor){.serial = 0};
    if (record.len > ANCHOR_BYTES_MAX || json_check(record, NULL, NULL) < 0 ||
        json_kind(record) != JSON_OBJECT || !get_kind(record, &anchor->kind))
        return false;
    through = anchor->kind == ANCHOR_SEAM || anchor->kind == ANCHOR_TRIM;
    anchor->items = json_get(record, STR("items"));
    anchor->reason = plain_text(json_get(record, STR("reason")));
    anchor->is_signed = json_get(record, STR("key")).data != NULL;
    anchor->has_since = json_get(record, STR("since")).data != NULL;
    get_number(record, "begin", &anchor->begin); /* absent of older versions */
    return anchor->reason.len <= ANCHOR_REASON_BYTES_MAX &&
           get_number(record, "serial", &anchor->serial) && anchor->serial > 0 &&
           get_hex(record, "previous", anchor->previous, sizeof anchor->previous) &&
           clock_parse(plain_text(json_get(record, STR("at"))), &anchor->at_us) &&
           get_number(record, "lines", &anchor->lines) &&
           (!anchor->has_since || get_number(record, "since", &anchor->since_us)) &&
           (!through || (get_number(record, "through", &anchor->through) &&
                         get_hex(record, "through_hash", anchor->through_hash,
                                 sizeof anchor->through_hash))) &&
           (!anchor->is_signed || get_hex(record, "key", anchor->key, sizeof anchor->key)) &&
           anchor->items.data && json_kind(anchor->items) == JSON_ARRAY &&
           hash_sha256(record, anchor->hash) == 0;
}

/* What records of older versions lack. */
static bool parse_last(struct json_iter *iter, struct log_part *item)
{
    struct str last;

    if (!json_next_element(iter, &last))
        return true;
    item->written = str_is(plain_text(last), WRITTEN);
    item->follows = !item->written && json_kind(last) == JSON_STRING;
    item->based = !item->written && !item->follows;
    if (item->written)
        return true;
    return item->follows ? hash_from_hex(plain_text(last), item->from, sizeof item->from)
                         : json_int64(last, &item->base) && item->base >= 0;
}

/* What stands behind the number of lines, if anything. */
static bool parse_rest(struct json_iter *iter, struct log_part *item)
{
    struct str word, at, window;
    bool more = json_next_element(iter, &word);

    if (more && json_kind(word) == JSON_STRING) {
        item->closed = str_is(plain_text(word), CLOSED);
        item->refused = str_is(plain_text(word), REFUSED);
        item->emptied = !item->closed && !item->refused;
        if (item->emptied && !severity_parse(plain_text(word), &item->level))
            return false;
        more = json_next_element(iter, &at);
    } else {
        at = word;
    }
    return !more || (json_int64(at, &item->at_us) && json_next_element(iter, &window) &&
                     json_int64(window, &item->window_ms) && item->window_ms >= 0 &&
                     parse_last(iter, item));
}

static bool parse_item(struct str array, struct log_part *item)
{
    struct json_iter inner;
    struct str id, seq, hash, lines;

    *item = (struct log_part){.lines = 0};
    if (json_kind(array) != JSON_ARRAY)
        return false;
    json_begin(array, &inner);
    if (!json_next_element(&inner, &id) || !json_next_element(&inner, &seq) ||
        !json_next_element(&inner, &hash) || !json_int64(seq, &item->head.seq) ||
        item->head.seq < 0 || !uuid_parse(plain_text(id), &item->head.execution_id))
        return false;
    logchain_resume(&item->head, &item->head.execution_id, item->head.seq, plain_text(hash));
    if (json_next_element(&inner, &lines) &&
        (!json_int64(lines, &item->lines) || item->lines < 0))
        return false;
    return parse_rest(&inner, item);
}

bool anchor_next_item(struct json_iter *iter, struct log_part *item)
{
    struct str array;

    if (!json_next_element(iter, &array))
        return false;
    if (!parse_item(array, item))
        *item = (struct log_part){.unread = true};
    return true;
}

bool anchor_signature_good(const struct anchor *anchor, struct str record, struct str signature)
{
    uint8_t bytes[SIGN_BYTES];

    return anchor->is_signed && hash_from_hex(signature, bytes, sizeof bytes) &&
           sign_check(anchor->key, record, bytes);
}

void anchor_line_write(struct buf *out, const struct anchor_row *row)
{
    buf_text(out, "{\"record\":");
    buf_str(out, row->record);
    buf_format(out, ",\"signature\":\"%s\"}\n", row->signature);
}

bool anchor_line_parse(struct str line, struct str *record, struct str *signature)
{
    struct str value;

    if (line.len > ANCHOR_LINE_BYTES_MAX || json_check(line, &value, NULL) < 0 ||
        json_kind(value) != JSON_OBJECT)
        return false;
    *record = json_get(value, STR("record"));
    *signature = plain_text(json_get(value, STR("signature")));
    return record->data && signature->data;
}
