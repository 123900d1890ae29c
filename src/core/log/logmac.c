/* The code is over the fields of a note in a fixed order, each of fixed length or behind its
 * length. Nothing here may ever change: stores are full of these codes. Pure. */
#include "core/log/logmac.h"

#include <stdlib.h>

#define PURPOSE "perdura log heads 1"
#define TYPE_BYTES_MAX 1024
#define FIXED_BYTES (16 + 8 + 32 + 8 + 16 + 8 + 8 + 8)
#define CLOSED_BYTES_MAX 64
#define FROM_BYTES (8 + HASH_BYTES)

struct log_mac {
    struct hash_mac *hmac;
};

struct log_mac *logmac_new(const struct sign_key *key)
{
    struct log_mac *mac = calloc(1, sizeof *mac);
    uint8_t secret[SIGN_SEED_BYTES];

    if (mac && sign_key_derive(key, STR(PURPOSE), secret) == 0)
        mac->hmac = hash_mac_new(str_span((const char *)secret, sizeof secret));
    memset(secret, 0, sizeof secret);
    if (mac && mac->hmac)
        return mac;
    logmac_free(mac);
    return NULL;
}

void logmac_free(struct log_mac *mac)
{
    if (!mac)
        return;
    hash_mac_free(mac->hmac);
    free(mac);
}

static char *put(char *at, const void *data, size_t len)
{
    if (len)
        memcpy(at, data, len);
    return at + len;
}

static char *put_number(char *at, int64_t value)
{
    for (int i = 0; i < 8; i++)
        *at++ = (char)(uint8_t)((uint64_t)value >> (56 - 8 * i));
    return at;
}

int logmac_make(struct log_mac *mac, const struct log_note *note, char out[LOGMAC_HEX_BYTES + 1])
{
    const struct log_head *head = &note->part.head;
    char text[FIXED_BYTES + TYPE_BYTES_MAX + CLOSED_BYTES_MAX + FROM_BYTES], *at = text;
    uint8_t code[HASH_BYTES];

    if (!head->hashed || note->task_type.len > TYPE_BYTES_MAX ||
        note->closed.len > CLOSED_BYTES_MAX)
        return -ERR_INVALID;
    at = put(at, head->execution_id.bytes, sizeof head->execution_id.bytes);
    at = put_number(at, head->seq);
    at = put(at, head->hash, sizeof head->hash);
    at = put_number(at, note->part.lines);
    at = put(at, note->task_id.bytes, sizeof note->task_id.bytes);
    at = put_number(at, note->logged_at_us);
    at = put_number(at, (int64_t)note->task_type.len);
    at = put(at, note->task_type.data, note->task_type.len);
    at = put_number(at, (int64_t)note->closed.len);
    at = put(at, note->closed.data, note->closed.len);
    if (note->part.follows) {
        at = put_number(at, HASH_BYTES);
        at = put(at, note->part.from, HASH_BYTES);
    }
    TRY(hash_mac_make(mac->hmac, str_span(text, (size_t)(at - text)), code));
    hash_hex(code, sizeof code, out);
    return 0;
}

bool logmac_good(struct log_mac *mac, const struct log_note *note)
{
    char made[LOGMAC_HEX_BYTES + 1];

    return logmac_make(mac, note, made) == 0 &&
           hash_equal_secret(str_of(made), str_of(note->mac));
}

bool logmac_adopted(const struct uuid *execution_id, int64_t logged_at_us, int64_t since_us)
{
    return since_us > 0 && logged_at_us <= since_us &&
           uuid7_time_ms(execution_id) <= since_us / 1000;
}

/* Of a line without a hash, from before there were chains, the note has zeros. */
bool logmac_trusts(struct log_mac *mac, const struct log_last *last)
{
    const struct log_note *note = &last->note;
    uint8_t hash[HASH_BYTES] = {0};

    if (last->chain_hash.len > 0 && !hash_from_hex(last->chain_hash, hash, sizeof hash))
        return false;
    return last->noted && note->part.head.seq == last->seq &&
           note->logged_at_us == last->logged_at_us && note->part.head.hashed &&
           memcmp(hash, note->part.head.hash, sizeof hash) == 0 && logmac_good(mac, note);
}
