/* One step of a chain: fields in a fixed order, each behind its length, so that no two different
 * lines read alike; the texts by their hash, which may outlive them. Nothing here may ever change:
 * stores are full of these hashes. Pure, any thread. */
#include "core/log/logchain.h"

#define ABSENT UINT64_MAX /* no text is this long */
#define STEP_BYTES 240    /* 32 + 16 + 16 + 8 + 5 + 8 + 32 + 16 + 32 bytes behind 9 lengths of 8 */
#define ABOUT_BYTES 4096  /* more than the texts may have */
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
    if (len)
        memcpy(writer->at, data, len);
    writer->at += len;
}

static void put_text(struct writer *writer, struct str text)
{
    if (text.data)
        put_field(writer, text.data, text.len);
    else
        put_number(writer, ABSENT);
}

void logchain_resume(struct log_head *head, const struct uuid *execution_id, int64_t seq,
                     struct str chain_hash)
{
    head->execution_id = *execution_id;
    head->seq = seq;
    head->hashed = chain_hash.len == HASH_HEX_BYTES &&
                   hash_from_hex(chain_hash, head->hash, sizeof head->hash);
}

static int hash_long(struct str message, struct str context, uint8_t out[HASH_BYTES])
{
    struct hash_state *state = hash_sha256_begin();
    const struct str parts[] = {message, context};

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        char len[8];
        struct writer writer = {len};

        put_number(&writer, parts[i].data ? parts[i].len : ABSENT);
        hash_sha256_add(state, str_span(len, sizeof len));
        hash_sha256_add(state, parts[i]);
    }
    return hash_sha256_end(state, out);
}

int logchain_content(struct str message, struct str context, uint8_t out[HASH_BYTES])
{
    char text[16 + AT_ONCE_BYTES];
    struct writer writer = {text};

    if (message.len + context.len > AT_ONCE_BYTES)
        return hash_long(message, context, out);
    put_text(&writer, message);
    put_text(&writer, context);
    return hash_sha256(str_span(text, (size_t)(writer.at - text)), out);
}

int logchain_about(int64_t attempt_number, struct str worker_id, struct str correlation_id,
                   uint8_t out[HASH_BYTES])
{
    char text[ABOUT_BYTES];
    struct writer writer = {text};

    if (worker_id.len + correlation_id.len + 32 > sizeof text)
        return -ERR_INVALID;
    put_number(&writer, 8);
    put_number(&writer, (uint64_t)attempt_number);
    put_text(&writer, worker_id.len ? worker_id : STR_NONE);
    put_text(&writer, correlation_id.len ? correlation_id : STR_NONE);
    return hash_sha256(str_span(text, (size_t)(writer.at - text)), out);
}

int logchain_step(struct log_head *head, const struct log_line *line)
{
    const char *level = severity_word(line->level);
    char text[STEP_BYTES];
    struct writer writer = {text};
    uint8_t content[HASH_BYTES], hash[HASH_BYTES];
    int rc = 0;

    if (line->removed.data)
        rc = hash_from_hex(line->removed, content, sizeof content) ? 0 : -ERR_INVALID;
    else
        rc = logchain_content(line->message, line->context, content);
    if (rc < 0)
        return rc;
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
    put_field(&writer, content, sizeof content);
    if (line->bound) {
        put_field(&writer, line->id.bytes, sizeof line->id.bytes);
        put_field(&writer, line->about, sizeof line->about);
    }
    rc = hash_sha256(str_span(text, (size_t)(writer.at - text)), hash);
    if (rc < 0)
        return rc;
    head->execution_id = line->execution_id;
    head->seq = line->seq;
    head->hashed = true;
    memcpy(head->hash, hash, sizeof hash);
    return 0;
}
