/* Envelopes: what is authenticated is written field by field, each behind its length, so that no
 * two places read alike. Nothing here may ever change: stores are full of these texts. */
#include "core/seal/envelope.h"

#include "base/base64.h"

#include <endian.h>
#include <sodium.h>

#define NONCE_BYTES SEAL_NONCE_BYTES
#define TAG_BYTES SEAL_TAG_BYTES
#define NONCE_CHARS BASE64_CHARS(NONCE_BYTES)
#define MARK_LEN (sizeof ENVELOPE_MARK - 1)
#define HEAD_LEN (MARK_LEN + UUID_TEXT_BYTES - 1)
#define PLACE_BYTES_MAX 2048 /* more than the bounds of its parts allow */

struct writer {
    uint8_t bytes[PLACE_BYTES_MAX];
    size_t len;
};

void seal_init(void)
{
    ASSERT(sodium_init() >= 0);
}

/* A part that does not fit ends the program: bounds are checked where texts come in. */
static void put(struct writer *writer, struct str text)
{
    uint64_t len = htobe64(text.data ? text.len : UINT64_MAX); /* absent differs from empty */

    ASSERT(writer->len + 8 + text.len <= sizeof writer->bytes);
    memcpy(writer->bytes + writer->len, &len, 8);
    writer->len += 8;
    if (text.len)
        memcpy(writer->bytes + writer->len, text.data, text.len);
    writer->len += text.len;
}

static struct str written(const struct writer *writer)
{
    return str_span((const char *)writer->bytes, writer->len);
}

static void write_place(struct writer *writer, struct str head, const struct seal_place *place)
{
    writer->len = 0;
    put(writer, head);
    put(writer, place->namespace_name);
    put(writer, str_of(place->table));
    put(writer, place->row);
    put(writer, str_of(place->column));
    put(writer, place->pointer);
}

bool envelope_like(struct str text)
{
    size_t quote = text.len > 0 && text.data[0] == '"';

    return text.len >= quote + MARK_LEN && memcmp(text.data + quote, ENVELOPE_MARK, MARK_LEN) == 0;
}

bool envelope_parse(struct str text, struct envelope *envelope)
{
    struct str id;

    if (text.len >= 2 && text.data[0] == '"') {
        if (text.data[text.len - 1] != '"')
            return false;
        text = str_span(text.data + 1, text.len - 2);
    }
    if (text.len < HEAD_LEN + 1 + NONCE_CHARS + 1 + BASE64_CHARS(TAG_BYTES) ||
        !str_starts(text, STR(ENVELOPE_MARK)) || text.data[HEAD_LEN] != '|' ||
        text.data[HEAD_LEN + 1 + NONCE_CHARS] != '|')
        return false;
    id = str_span(text.data + MARK_LEN, UUID_TEXT_BYTES - 1);
    *envelope = (struct envelope){
        .head = str_span(text.data, HEAD_LEN),
        .nonce = str_span(text.data + HEAD_LEN + 1, NONCE_CHARS),
        .text = str_span(text.data + HEAD_LEN + NONCE_CHARS + 2,
                         text.len - HEAD_LEN - NONCE_CHARS - 2)};
    return uuid_parse(id, &envelope->key_id);
}

int envelope_seal(struct seal_cipher *cipher, const uint8_t key[SEAL_KEY_BYTES],
                  const struct uuid *key_id, const uint8_t nonce[SEAL_NONCE_BYTES],
                  const struct seal_place *place, struct str clear, bool quoted,
                  struct arena *arena, struct str *out)
{
    size_t sealed_len = clear.len + TAG_BYTES, chars = BASE64_CHARS(sealed_len);
    size_t len = HEAD_LEN + 1 + NONCE_CHARS + 1 + chars + (quoted ? 2 : 0);
    char *text = arena_space(arena, len + 1);
    uint8_t *sealed = arena_space(arena, sealed_len);
    struct writer writer;
    char *at = text;

    if (!text || !sealed)
        return -ERR_MEMORY;
    if (quoted)
        *at++ = '"';
    memcpy(at, ENVELOPE_MARK, MARK_LEN);
    uuid_format(key_id, at + MARK_LEN);
    write_place(&writer, str_span(at, HEAD_LEN), place);
    seal_cipher_seal(cipher, key, nonce, written(&writer), clear, sealed);
    at += HEAD_LEN;
    *at++ = '|';
    base64_write(nonce, NONCE_BYTES, at);
    at += NONCE_CHARS;
    *at++ = '|';
    base64_write(sealed, sealed_len, at);
    at += chars;
    if (quoted)
        *at = '"';
    text[len] = '\0';
    *out = str_span(text, len);
    return 0;
}

int envelope_open(struct seal_cipher *cipher, const uint8_t key[SEAL_KEY_BYTES],
                  const struct envelope *envelope, const struct seal_place *place,
                  struct arena *arena, struct str *clear)
{
    uint8_t *text = arena_space(arena, envelope->text.len * 3 / 4 + 1);
    uint8_t nonce[NONCE_BYTES];
    struct writer writer;
    size_t nonce_len, len;

    *clear = STR_NONE;
    if (!text)
        return -ERR_MEMORY;
    if (!base64_read(envelope->nonce, nonce, &nonce_len) || nonce_len != sizeof nonce ||
        !base64_read(envelope->text, text, &len) || len < TAG_BYTES)
        return -ERR_INVALID;
    write_place(&writer, envelope->head, place);
    if (!seal_cipher_open(cipher, key, nonce, written(&writer), text, len))
        return -ERR_INVALID;
    text[len - TAG_BYTES] = '\0';
    *clear = str_span((const char *)text, len - TAG_BYTES);
    return 0;
}

/* ---- packed ---- */

enum { PACKED_PLAIN = 1, PACKED_QUOTED = 2 }; /* no text has one of these behind its mark */
#define PACKED_HEAD (MARK_LEN + 1 + sizeof(struct uuid) + NONCE_BYTES)

bool envelope_pack(struct str text, uint8_t *out, size_t *len)
{
    struct envelope envelope;
    char id[UUID_TEXT_BYTES];
    size_t part;

    if (!envelope_parse(text, &envelope))
        return false;
    uuid_format(&envelope.key_id, id); /* it may have been written in another way */
    if (memcmp(envelope.head.data + MARK_LEN, id, UUID_TEXT_BYTES - 1) != 0)
        return false;
    memcpy(out, ENVELOPE_MARK, MARK_LEN);
    out[MARK_LEN] = text.data[0] == '"' ? PACKED_QUOTED : PACKED_PLAIN;
    memcpy(out + MARK_LEN + 1, envelope.key_id.bytes, sizeof envelope.key_id.bytes);
    if (!base64_read(envelope.nonce, out + PACKED_HEAD - NONCE_BYTES, &part) ||
        !base64_read(envelope.text, out + PACKED_HEAD, &part))
        return false;
    *len = PACKED_HEAD + part;
    return true;
}

bool envelope_is_packed(struct str bytes)
{
    return bytes.len >= PACKED_HEAD + TAG_BYTES && bytes.data[0] == ENVELOPE_MARK[0] &&
           memcmp(bytes.data, ENVELOPE_MARK, MARK_LEN) == 0 &&
           (bytes.data[MARK_LEN] == PACKED_PLAIN || bytes.data[MARK_LEN] == PACKED_QUOTED);
}

size_t envelope_unpacked_len(struct str packed)
{
    return HEAD_LEN + 1 + NONCE_CHARS + 1 + BASE64_CHARS(packed.len - PACKED_HEAD) +
           (packed.data[MARK_LEN] == PACKED_QUOTED ? 2 : 0);
}

void envelope_unpack(struct str packed, char *out)
{
    const uint8_t *bytes = (const uint8_t *)packed.data;
    bool quoted = bytes[MARK_LEN] == PACKED_QUOTED;
    char *end = out + envelope_unpacked_len(packed) - 1;
    struct uuid id;

    memcpy(id.bytes, bytes + MARK_LEN + 1, sizeof id.bytes);
    if (quoted)
        *out++ = '"';
    memcpy(out, ENVELOPE_MARK, MARK_LEN);
    uuid_format(&id, out + MARK_LEN);
    out += HEAD_LEN;
    *out++ = '|';
    base64_write(bytes + PACKED_HEAD - NONCE_BYTES, NONCE_BYTES, out);
    out += NONCE_CHARS;
    *out++ = '|';
    base64_write(bytes + PACKED_HEAD, packed.len - PACKED_HEAD, out);
    if (quoted)
        *end = '"';
}

struct str envelope_keep(struct str stored, struct arena *arena)
{
    size_t len;
    char *out;

    if (!envelope_is_packed(stored))
        return arena_str(arena, stored);
    len = envelope_unpacked_len(stored);
    out = arena_space(arena, len + 1);
    if (!out)
        return STR_NONE;
    envelope_unpack(stored, out);
    out[len] = '\0';
    return str_span(out, len);
}

/* ---- data keys ---- */

static void write_wrap_place(struct writer *writer, const struct wrap_place *place)
{
    writer->len = 0;
    put(writer, STR("pdx1-key"));
    put(writer, uuid_bytes(&place->id));
    put(writer, place->namespace_name);
    put(writer, place->day);
    put(writer, place->user_id);
    put(writer, place->kek_id);
}

void data_key_wrap(const uint8_t kek[SEAL_KEY_BYTES], const struct wrap_place *place,
                   const uint8_t key[SEAL_KEY_BYTES], char *out)
{
    uint8_t bytes[NONCE_BYTES + SEAL_KEY_BYTES + TAG_BYTES];
    struct writer writer;

    _Static_assert(BASE64_CHARS(sizeof bytes) == WRAPPED_CHARS, "as the header says");
    write_wrap_place(&writer, place);
    randombytes_buf(bytes, NONCE_BYTES);
    crypto_aead_xchacha20poly1305_ietf_encrypt(bytes + NONCE_BYTES, NULL, key, SEAL_KEY_BYTES,
                                               writer.bytes, writer.len, NULL, bytes, kek);
    base64_write(bytes, sizeof bytes, out);
    out[WRAPPED_CHARS] = '\0';
}

bool data_key_unwrap(const uint8_t kek[SEAL_KEY_BYTES], const struct wrap_place *place,
                     struct str wrapped, uint8_t key[SEAL_KEY_BYTES])
{
    uint8_t bytes[NONCE_BYTES + SEAL_KEY_BYTES + TAG_BYTES];
    struct writer writer;
    size_t len;

    if (wrapped.len != WRAPPED_CHARS || !base64_read(wrapped, bytes, &len) || len != sizeof bytes)
        return false;
    write_wrap_place(&writer, place);
    return crypto_aead_xchacha20poly1305_ietf_decrypt(key, NULL, NULL, bytes + NONCE_BYTES,
                                                      len - NONCE_BYTES, writer.bytes, writer.len,
                                                      bytes, kek) == 0;
}
