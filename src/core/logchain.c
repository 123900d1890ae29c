/* One step of a chain: fields in a fixed order, each behind its length, so that no two different
 * lines read alike. Nothing here may ever change: stores are full of these hashes. Pure, any
 * thread. */
#include "core/logchain.h"

#define ABSENT UINT64_MAX /* no text is this long */
#define FIXED_BYTES 184   /* all but the texts: 32 + 16 + 16 + 8 + 5 + 8 bytes, 8 lengths of 8 */
#define AT_ONCE_BYTES 2048 /* most lines are shorter: then one call of the hash is enough */

struct writer {
    char *at;
};

static void put_number(struct writer *writer, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        *writer->at++ = (char)(uint8_t)(value >> (56 - 8 * i));
}

static void put_field(struct writer *writer, const void *data, size_t len)
{
    put_number(writer, len);
    memcpy(writer->at, data, len);
    writer->at += len;
}

void logchain_resume(struct log_head *head, const struct uuid *execution_id, int64_t seq,
                     struct str chain_hash)
{
    head->execution_id = *execution_id;
    head->seq = seq;
    head->hashed = chain_hash.len == HASH_HEX_BYTES &&
                   hash_from_hex(chain_hash, head->hash, sizeof head->hash);
}

/* All that stands before the message's own bytes. */
static size_t put_fixed(char *out, const struct log_head *head, const struct log_line *line)
{
    const char *level = severity_word(line->level);
    struct writer writer = {out};

    if (head->hashed)
        put_field(&writer, head->hash, sizeof head->hash);
    else
        put_field(&writer, line->execution_id.bytes, sizeof line->execution_id.bytes);
    put_field(&writer, line->execution_id.bytes, sizeof line->execution_id.bytes);
    put_field(&writer, line->task_id.bytes, sizeof line->task_id.bytes);
    put_number(&writer, 8);
    put_number(&writer, (uint64_t)line->seq);
    put_field(&writer, level, strlen(level));
    put_number(&writer, 8);
    put_number(&writer, (uint64_t)line->logged_at_us);
    put_number(&writer, line->message.data ? line->message.len : ABSENT);
    return (size_t)(writer.at - out);
}

static int hash_long(struct str fixed, const struct log_line *line, struct str context_len,
                     uint8_t out[HASH_BYTES])
{
    struct hash_state *state = hash_sha256_begin();

    hash_sha256_add(state, fixed);
    hash_sha256_add(state, line->message);
    hash_sha256_add(state, context_len);
    hash_sha256_add(state, line->context);
    return hash_sha256_end(state, out);
}

static int hash_short(char *text, size_t len, const struct log_line *line, struct str context_len,
                      uint8_t out[HASH_BYTES])
{
    const struct str parts[] = {line->message, context_len, line->context};

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i].len)
            memcpy(text + len, parts[i].data, parts[i].len);
        len += parts[i].len;
    }
    return hash_sha256(str_span(text, len), out);
}

int logchain_step(struct log_head *head, const struct log_line *line)
{
    char text[FIXED_BYTES + 8 + AT_ONCE_BYTES];
    char context_len[8];
    uint8_t hash[HASH_BYTES];
    struct writer writer = {context_len};
    size_t len = put_fixed(text, head, line);
    struct str tail = str_span(context_len, sizeof context_len);
    int rc;

    put_number(&writer, line->context.data ? line->context.len : ABSENT);
    if (line->message.len + line->context.len <= AT_ONCE_BYTES)
        rc = hash_short(text, len, line, tail, hash);
    else
        rc = hash_long(str_span(text, len), line, tail, hash);
    if (rc < 0)
        return rc;
    head->execution_id = line->execution_id;
    head->seq = line->seq;
    head->hashed = true;
    memcpy(head->hash, hash, sizeof hash);
    return 0;
}
