/* The subset of JSON Schema that tools have. Recursion is bounded by the depth of checked JSON. */
#include "core/agent/schema.h"

#include <math.h>

#define PLACE_BYTES 128

struct place {
    char text[PLACE_BYTES]; /* "/a/0", "" = the whole */
    size_t len;
};

static size_t enter(struct place *place, struct str name)
{
    size_t before = place->len;
    struct str cut = str_cut(name, 40);

    if (before + cut.len + 2 < sizeof place->text) {
        place->text[place->len++] = '/';
        memcpy(place->text + place->len, cut.data, cut.len);
        place->len += cut.len;
        place->text[place->len] = '\0';
    }
    return before;
}

static void leave(struct place *place, size_t before)
{
    place->len = before;
    place->text[before] = '\0';
}

static const char *of(const struct place *place)
{
    return place->len ? place->text : "the arguments";
}

/* ---- the schema itself ---- */

static bool type_known(struct str type)
{
    static const char *const types[] = {"\"object\"", "\"array\"", "\"string\"", "\"number\"",
                                        "\"integer\"", "\"boolean\"", "\"null\""};

    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (str_is(type, types[i]))
            return true;
    return false;
}

static int check_at(struct str schema, struct place *place, struct err *err);

static int check_type(struct str value, const struct place *place, struct err *err)
{
    struct json_iter iter;
    struct str type;
    bool fine = json_kind(value) == JSON_STRING && type_known(value);

    if (json_kind(value) == JSON_ARRAY) {
        fine = json_count(value) > 0;
        json_begin(value, &iter);
        while (json_next_element(&iter, &type))
            fine &= type_known(type);
    }
    return fine ? 0 : err_set(err, ERR_INVALID, "the type at %s of parameters must be object, "
                              "array, string, number, integer, boolean or null, or a list of them",
                              of(place));
}

static int check_properties(struct str value, struct place *place, struct err *err)
{
    struct json_member member;
    struct json_iter iter;

    if (json_kind(value) != JSON_OBJECT)
        return err_set(err, ERR_INVALID, "properties at %s of parameters must be a mapping",
                       of(place));
    json_begin(value, &iter);
    while (json_next_member(&iter, &member)) {
        size_t before = enter(place, member.key);

        TRY(check_at(member.value, place, err));
        leave(place, before);
    }
    return 0;
}

static int check_kind(struct json_member *member, enum json_kind kind, const char *must,
                      const struct place *place, struct err *err)
{
    bool strings = true;
    struct json_iter iter;
    struct str element;

    if (str_is(member->key, "required")) {
        json_begin(member->value, &iter);
        while (json_next_element(&iter, &element))
            strings &= json_kind(element) == JSON_STRING;
    }
    if (json_kind(member->value) == kind && strings)
        return 0;
    return err_set(err, ERR_INVALID, STR_FMT " at %s of parameters must be %s",
                   STR_ARG(member->key), of(place), must);
}

static int check_word(struct json_member *member, struct place *place, struct err *err)
{
    static const struct {
        const char *word;
        enum json_kind kind;
        const char *must;
    } words[] = {{"required", JSON_ARRAY, "a list of names"}, {"enum", JSON_ARRAY, "a list"},
                 {"minimum", JSON_NUMBER, "a number"},   {"maximum", JSON_NUMBER, "a number"},
                 {"minLength", JSON_NUMBER, "a number"}, {"maxLength", JSON_NUMBER, "a number"},
                 {"minItems", JSON_NUMBER, "a number"},  {"maxItems", JSON_NUMBER, "a number"}};
    static const char *const silent[] = {"description", "title", "default", "examples", "$schema",
                                         "const"};
    enum json_kind kind = json_kind(member->value);

    if (str_is(member->key, "type"))
        return check_type(member->value, place, err);
    if (str_is(member->key, "properties"))
        return check_properties(member->value, place, err);
    if (str_is(member->key, "items"))
        return check_at(member->value, place, err);
    if (str_is(member->key, "additionalProperties") && (kind == JSON_TRUE || kind == JSON_FALSE))
        return 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (str_is(member->key, words[i].word))
            return check_kind(member, words[i].kind, words[i].must, place, err);
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++)
        if (str_is(member->key, silent[i]))
            return 0;
    return err_set(err, ERR_INVALID, "'" STR_FMT "' at %s of parameters is not supported; see "
                   "docs/agents.md for what is", STR_ARG(str_cut(member->key, 60)), of(place));
}

static int check_at(struct str schema, struct place *place, struct err *err)
{
    struct json_member member;
    struct json_iter iter;

    if (json_kind(schema) != JSON_OBJECT)
        return err_set(err, ERR_INVALID, "%s of parameters must be a mapping", of(place));
    json_begin(schema, &iter);
    while (json_next_member(&iter, &member))
        TRY(check_word(&member, place, err));
    return 0;
}

int schema_check(struct str schema, struct err *err)
{
    struct place place = {.len = 0};
    struct str type;

    TRY(check_at(schema, &place, err));
    type = json_get(schema, STR("type"));
    return type.data && str_is(type, "\"object\"")
               ? 0 : err_set(err, ERR_INVALID, "parameters must have the type object");
}

/* ---- values ---- */

static bool is_of_type(struct str value, struct str type)
{
    double number;

    switch (json_kind(value)) {
    case JSON_NULL:
        return str_is(type, "\"null\"");
    case JSON_TRUE:
    case JSON_FALSE:
        return str_is(type, "\"boolean\"");
    case JSON_NUMBER:
        return str_is(type, "\"number\"") ||
               (str_is(type, "\"integer\"") && json_double(value, &number) &&
                floor(number) == number);
    case JSON_STRING:
        return str_is(type, "\"string\"");
    case JSON_ARRAY:
        return str_is(type, "\"array\"");
    case JSON_OBJECT:
        return str_is(type, "\"object\"");
    }
    return false;
}

static int validate_type(struct str type, struct str value, const struct place *place,
                         struct err *err)
{
    bool fine = json_kind(type) == JSON_STRING && is_of_type(value, type);
    struct json_iter iter;
    struct str one;

    if (json_kind(type) == JSON_ARRAY) {
        json_begin(type, &iter);
        while (json_next_element(&iter, &one))
            fine |= is_of_type(value, one);
    }
    return fine ? 0 : err_set(err, ERR_INVALID, "%s must be of the type " STR_FMT, of(place),
                              STR_ARG(str_cut(type, 100)));
}

/* The same value, however it is written; numbers by what they are. */
static bool same(struct str a, struct str b)
{
    BUF_AUTO struct buf left = BUF_INIT(1 << 20), right = BUF_INIT(1 << 20);
    struct err err;

    return json_canonical(a, &left, &err) == 0 && json_canonical(b, &right, &err) == 0 &&
           str_eq(buf_view(&left), buf_view(&right));
}

static bool is_one_of(struct str list, struct str value)
{
    struct json_iter iter;
    struct str one;

    json_begin(list, &iter);
    while (json_next_element(&iter, &one))
        if (same(one, value))
            return true;
    return false;
}

static size_t characters(struct str value)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct str text = json_string(value, &arena);
    size_t count = 0;

    for (size_t i = 0; i < text.len; i++)
        count += ((unsigned char)text.data[i] & 0xC0u) != 0x80u;
    return count;
}

/* A bound of the schema against what the value has of it. */
static int validate_bound(struct str schema, const char *word, bool least, double has,
                          const char *unit, const struct place *place, struct err *err)
{
    struct str value = json_get(schema, str_of(word));
    double bound;

    if (!value.data || !json_double(value, &bound) || (least ? has >= bound : has <= bound))
        return 0;
    return err_set(err, ERR_INVALID, "%s must %s " STR_FMT "%s", of(place),
                   least ? "have at least" : "have at most", STR_ARG(str_cut(value, 40)), unit);
}

static int validate_at(struct str schema, struct str value, struct place *place, struct err *err);

static int validate_members(struct str schema, struct str value, struct place *place,
                            struct err *err)
{
    struct str properties = json_get(schema, STR("properties"));
    struct str required = json_get(schema, STR("required"));
    struct str more = json_get(schema, STR("additionalProperties"));
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct json_member member;
    struct json_iter iter;
    struct str name;

    if (required.data) {
        json_begin(required, &iter);
        while (json_next_element(&iter, &name)) {
            struct str key = json_string(name, &arena);

            if (!json_get(value, key).data)
                return err_set(err, ERR_INVALID, "%s has no '" STR_FMT "', which is required",
                               of(place), STR_ARG(str_cut(key, 60)));
        }
    }
    json_begin(value, &iter);
    while (json_next_member(&iter, &member)) {
        struct str key = json_decode_key(member.key, &arena);
        struct str inner = properties.data ? json_get(properties, key) : STR_NONE;
        size_t before;

        if (!inner.data && more.data && json_kind(more) == JSON_FALSE)
            return err_set(err, ERR_INVALID, "%s has '" STR_FMT "', which is not a parameter",
                           of(place), STR_ARG(str_cut(key, 60)));
        if (!inner.data)
            continue;
        before = enter(place, key);
        TRY(validate_at(inner, member.value, place, err));
        leave(place, before);
    }
    return 0;
}

static int validate_items(struct str schema, struct str value, struct place *place,
                          struct err *err)
{
    struct str items = json_get(schema, STR("items"));
    double count = (double)json_count(value);
    struct json_iter iter;
    struct str item;
    char number[24];
    int index = 0;

    TRY(validate_bound(schema, "minItems", true, count, " items", place, err));
    TRY(validate_bound(schema, "maxItems", false, count, " items", place, err));
    if (!items.data)
        return 0;
    json_begin(value, &iter);
    while (json_next_element(&iter, &item)) {
        size_t before;

        snprintf(number, sizeof number, "%d", index++);
        before = enter(place, str_of(number));
        TRY(validate_at(items, item, place, err));
        leave(place, before);
    }
    return 0;
}

static int validate_number(struct str schema, struct str value, const struct place *place,
                           struct err *err)
{
    struct str least = json_get(schema, STR("minimum")), most = json_get(schema, STR("maximum"));
    double number, bound;

    if (!json_double(value, &number))
        return 0;
    if (least.data && json_double(least, &bound) && number < bound)
        return err_set(err, ERR_INVALID, "%s must be at least " STR_FMT, of(place),
                       STR_ARG(str_cut(least, 40)));
    if (most.data && json_double(most, &bound) && number > bound)
        return err_set(err, ERR_INVALID, "%s must be at most " STR_FMT, of(place),
                       STR_ARG(str_cut(most, 40)));
    return 0;
}

static int validate_text(struct str schema, struct str value, const struct place *place,
                         struct err *err)
{
    bool bounded = json_get(schema, STR("minLength")).data ||
                   json_get(schema, STR("maxLength")).data;
    double count = bounded ? (double)characters(value) : 0;

    TRY(validate_bound(schema, "minLength", true, count, " characters", place, err));
    return validate_bound(schema, "maxLength", false, count, " characters", place, err);
}

static int validate_at(struct str schema, struct str value, struct place *place, struct err *err)
{
    struct str type = json_get(schema, STR("type"));
    struct str one_of = json_get(schema, STR("enum"));
    struct str exactly = json_get(schema, STR("const"));

    if (type.data)
        TRY(validate_type(type, value, place, err));
    if (one_of.data && !is_one_of(one_of, value))
        return err_set(err, ERR_INVALID, "%s must be one of " STR_FMT, of(place),
                       STR_ARG(str_cut(one_of, 200)));
    if (exactly.data && !same(exactly, value))
        return err_set(err, ERR_INVALID, "%s must be " STR_FMT, of(place),
                       STR_ARG(str_cut(exactly, 200)));
    switch (json_kind(value)) {
    case JSON_OBJECT:
        return validate_members(schema, value, place, err);
    case JSON_ARRAY:
        return validate_items(schema, value, place, err);
    case JSON_NUMBER:
        return validate_number(schema, value, place, err);
    case JSON_STRING:
        return validate_text(schema, value, place, err);
    default:
        return 0;
    }
}

int schema_validate(struct str schema, struct str value, struct err *err)
{
    struct place place = {.len = 0};

    return validate_at(schema, value, &place, err);
}
