/* Reading JWTs and checking their claims; signatures are in jwks.c. Strict where the standard is
 * loose: one encoding per value, JSON without duplicate members, no unknown critical headers.
 * Pure; any thread. */
#include "core/access/jwt.h"

#include "base/base64.h"
#include "base/json.h"

#define SECOND_US INT64_C(1000000)
#define SECONDS_MAX (INT64_MAX / SECOND_US / 4)

static const char *const algorithm_words[JWT_ALGORITHM_COUNT] = {"RS256", "ES256", "EdDSA"};

static int refuse(struct err *err, const char *why)
{
    return err_set(err, ERR_UNAUTHORIZED, "the JWT is not accepted: %s", why);
}

/* Cuts off the part up to the next dot, or all that is left. */
static struct str cut_part(struct str *text)
{
    const char *dot = text->len ? memchr(text->data, '.', text->len) : NULL;
    struct str part = str_span(text->data, dot ? (size_t)(dot - text->data) : text->len);

    *text = dot ? str_span(dot + 1, text->len - part.len - 1) : STR_NONE;
    return part;
}

bool jwt_is_one(struct str text)
{
    int dots = 0;

    for (size_t i = 0; i < text.len; i++)
        dots += text.data[i] == '.';
    return dots == 2;
}

static struct str decode(struct str part, struct arena *arena)
{
    uint8_t *bytes = arena_alloc(arena, part.len + 1);
    size_t len;

    if (!bytes || !base64_read(part, bytes, &len))
        return STR_NONE;
    return str_span((const char *)bytes, len);
}

static bool is_object(struct str text, struct str *object)
{
    struct err ignored;

    return text.data && json_check(text, object, &ignored) == 0 &&
           json_kind(*object) == JSON_OBJECT;
}

static bool read_algorithm(struct str header, struct arena *arena, enum jwt_algorithm *algorithm)
{
    struct str word = json_string(json_get(header, STR("alg")), arena);

    for (int i = 0; i < JWT_ALGORITHM_COUNT; i++)
        if (str_is(word, algorithm_words[i])) {
            *algorithm = (enum jwt_algorithm)i;
            return true;
        }
    return false;
}

int jwt_read(struct str text, struct arena *arena, struct jwt *jwt, struct err *err)
{
    struct str rest = text, parts[3], header;

    *jwt = (struct jwt){0};
    if (text.len > JWT_BYTES_MAX || !jwt_is_one(text))
        return refuse(err, "it is too long or does not have three parts");
    for (int i = 0; i < 3; i++)
        parts[i] = cut_part(&rest);
    if (!is_object(decode(parts[0], arena), &header) ||
        !is_object(decode(parts[1], arena), &jwt->claims))
        return refuse(err, "its header and claims are not JSON objects in base64url");
    if (json_get(header, STR("crit")).data)
        return refuse(err, "its header has extensions (crit) that are not known here");
    if (!read_algorithm(header, arena, &jwt->algorithm))
        return refuse(err, "its algorithm is not RS256, ES256 or EdDSA");
    jwt->key_id = json_string(json_get(header, STR("kid")), arena);
    jwt->signature = decode(parts[2], arena);
    if (str_empty(jwt->signature))
        return refuse(err, "it has no signature");
    jwt->signed_text = str_span(text.data, parts[0].len + 1 + parts[1].len);
    return 0;
}

/* ---- claims ---- */

/* A time claim in seconds, maybe with a fraction, which is dropped. */
static bool read_time(const struct jwt *jwt, const char *name, bool *given, int64_t *time_us)
{
    struct str value = json_get(jwt->claims, str_of(name));
    double seconds;

    *given = value.data != NULL;
    if (!*given)
        return true;
    if (!json_double(value, &seconds) || !(seconds >= 0) || seconds > (double)SECONDS_MAX)
        return false;
    *time_us = (int64_t)seconds * SECOND_US;
    return true;
}

static bool names_audience(struct str value, struct str audience, struct arena *arena)
{
    struct json_iter iter;
    struct str element;

    if (!value.data)
        return false;
    if (json_kind(value) == JSON_STRING)
        return str_eq(json_string(value, arena), audience);
    json_begin(value, &iter);
    if (json_kind(value) != JSON_ARRAY)
        return false;
    while (json_next_element(&iter, &element))
        if (json_kind(element) == JSON_STRING && str_eq(json_string(element, arena), audience))
            return true;
    return false;
}

int jwt_check(const struct jwt *jwt, const struct jwt_rules *rules, int64_t now_us,
              struct arena *arena, int64_t *expires_us, struct err *err)
{
    int64_t from_us = 0;
    bool has_end, has_start;

    *expires_us = 0;
    if (!read_time(jwt, "exp", &has_end, expires_us) || !has_end)
        return refuse(err, "it does not say when it expires (exp)");
    if (*expires_us + JWT_SKEW_US <= now_us)
        return refuse(err, "it has expired; get a new one");
    if (!read_time(jwt, "nbf", &has_start, &from_us))
        return refuse(err, "its nbf is not a time");
    if (has_start && from_us - JWT_SKEW_US > now_us)
        return refuse(err, "it is not valid yet (nbf)");
    if (!str_eq(json_string(json_get(jwt->claims, STR("iss")), arena), rules->issuer))
        return refuse(err, "its issuer (iss) is not the one configured in access.jwt.issuer");
    if (!names_audience(json_get(jwt->claims, STR("aud")), rules->audience, arena))
        return refuse(err, "its audience (aud) does not name access.jwt.audience");
    return 0;
}

static struct str join_texts(struct str array, struct arena *arena)
{
    struct str joined = STR(""), element;
    struct json_iter iter;

    json_begin(array, &iter);
    while (json_next_element(&iter, &element))
        if (json_kind(element) == JSON_STRING)
            joined = arena_format(arena, STR_FMT "%s" STR_FMT, STR_ARG(joined),
                                  joined.len ? " " : "", STR_ARG(json_string(element, arena)));
    return joined;
}

static struct str find_claim(const struct jwt *jwt, struct str name, struct arena *arena)
{
    if (name.len && name.data[0] == '/')
        return json_pointer(jwt->claims, name, arena);
    return name.len ? json_get(jwt->claims, name) : STR_NONE;
}

bool jwt_claim_given(const struct jwt *jwt, struct str name, struct arena *arena)
{
    return find_claim(jwt, name, arena).data != NULL;
}

struct str jwt_claim_text(const struct jwt *jwt, struct str name, struct arena *arena)
{
    struct str value = find_claim(jwt, name, arena);

    if (!value.data)
        return STR_NONE;
    if (json_kind(value) == JSON_STRING)
        return json_string(value, arena);
    return json_kind(value) == JSON_ARRAY ? join_texts(value, arena) : STR_NONE;
}
