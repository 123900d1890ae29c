/* A configuration's tree walked along the tables of config_table.c. Unknown and repeated keys,
 * wrong types and ranges are refused with file and line. The walk is bounded in depth and visits,
 * so that aliases cannot multiply. One thread. */
#include "cli/config/config_walk.h"

#include "base/json.h"
#include "cli/config/config_json.h"
#include "cli/frame/suggest.h"
#include "core/bounds.h"

struct walk {
    yaml_document_t *document;
    const char *name;
    struct config *config;
    struct err *err;
    uint32_t visits;
};

static struct str scalar_text(const yaml_node_t *node)
{
    return str_span((const char *)node->data.scalar.value, node->data.scalar.length);
}

static unsigned long line_of(const yaml_node_t *node)
{
    return (unsigned long)node->start_mark.line + 1;
}

/* Puts file and line before a sentence that has none yet. */
static int at_line(struct walk *walk, const yaml_node_t *node, const struct err *why)
{
    return err_set(walk->err, why->code, "%s:%lu: %s", walk->name, line_of(node), why->text);
}

static int refuse(struct walk *walk, const yaml_node_t *node, const char *key, const char *must)
{
    return err_set(walk->err, ERR_INVALID, "%s:%lu: %s must be %s", walk->name, line_of(node), key,
                   must);
}

static int out_of_memory(struct walk *walk)
{
    return err_set(walk->err, ERR_MEMORY, "%s is too large to be kept in memory", walk->name);
}

static yaml_node_t *node_at(struct walk *walk, int index)
{
    return yaml_document_get_node(walk->document, index);
}

/* Counts every node the interpretation could visit, each alias again, before it starts. */
static int check_size(struct walk *walk, const yaml_node_t *node, uint32_t depth)
{
    int rc = 0;

    if (depth > CONFIG_DEPTH_MAX)
        return err_set(walk->err, ERR_INVALID, "%s:%lu: nested deeper than %d levels", walk->name,
                       line_of(node), CONFIG_DEPTH_MAX);
    if (++walk->visits > CONFIG_NODES_MAX)
        return err_set(walk->err, ERR_TOO_LARGE, "%s has more than %d values", walk->name,
                       CONFIG_NODES_MAX);
    if (node->type == YAML_SEQUENCE_NODE)
        for (yaml_node_item_t *item = node->data.sequence.items.start;
             item < node->data.sequence.items.top && rc == 0; item++)
            rc = check_size(walk, node_at(walk, *item), depth + 1);
    else if (node->type == YAML_MAPPING_NODE)
        for (yaml_node_pair_t *pair = node->data.mapping.pairs.start;
             pair < node->data.mapping.pairs.top && rc == 0; pair++) {
            rc = check_size(walk, node_at(walk, pair->key), depth + 1);
            if (rc == 0)
                rc = check_size(walk, node_at(walk, pair->value), depth + 1);
        }
    return rc;
}

static bool is_plain(const yaml_node_t *node)
{
    return node->type == YAML_SCALAR_NODE &&
           node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

static bool is_null(const yaml_node_t *node)
{
    struct str text;

    if (!is_plain(node))
        return false;
    text = scalar_text(node);
    return text.len == 0 || str_is(text, "~") || str_is(text, "null");
}

static size_t sequence_count(const yaml_node_t *node)
{
    return (size_t)(node->data.sequence.items.top - node->data.sequence.items.start);
}

static size_t mapping_count(const yaml_node_t *node)
{
    return (size_t)(node->data.mapping.pairs.top - node->data.mapping.pairs.start);
}

static bool is_repeated(struct walk *walk, const yaml_node_t *node, size_t index, struct str key)
{
    for (size_t i = 0; i < index; i++) {
        yaml_node_t *other = node_at(walk, node->data.mapping.pairs.start[i].key);

        if (other->type == YAML_SCALAR_NODE && str_eq(scalar_text(other), key))
            return true;
    }
    return false;
}

static bool text_usable(struct str text)
{
    return text.len <= CONFIG_TEXT_BYTES_MAX && !(text.len && memchr(text.data, '\0', text.len)) &&
           str_is_utf8(text);
}

/* A list of texts, copied; items has room for one more. */
static int read_texts(struct walk *walk, const yaml_node_t *node, const struct config_field *field,
                      struct str **items, uint32_t *count)
{
    size_t max = (size_t)field->max;

    if (node->type != YAML_SEQUENCE_NODE || sequence_count(node) > max)
        return refuse(walk, node, field->key, node->type == YAML_SEQUENCE_NODE
                      ? "a shorter list" : "a list such as [\"a\", \"b\"]");
    *count = 0;
    *items = arena_alloc_array(&walk->config->arena, sequence_count(node) + 1, sizeof **items);
    if (!*items)
        return out_of_memory(walk);
    for (size_t i = 0; i < sequence_count(node); i++) {
        yaml_node_t *item = node_at(walk, node->data.sequence.items.start[i]);

        if (item->type != YAML_SCALAR_NODE || !text_usable(scalar_text(item)))
            return refuse(walk, item, field->key, "a list of texts");
        (*items)[*count] = arena_str(&walk->config->arena, scalar_text(item));
        if (!(*items)[(*count)++].data)
            return out_of_memory(walk);
    }
    return 0;
}

static int set_texts(struct walk *walk, const yaml_node_t *node, const struct config_field *field,
                     void *record)
{
    struct str *items;
    uint32_t count;

    TRY(read_texts(walk, node, field, &items, &count));
    memcpy((char *)record + field->offset, &items, sizeof items);
    memcpy((char *)record + field->count_offset, &count, sizeof count);
    return 0;
}

static int set_argv(struct walk *walk, const yaml_node_t *node, const struct config_field *field,
                    void *record)
{
    struct str *items;
    uint32_t count;
    const char **argv;

    TRY(read_texts(walk, node, field, &items, &count));
    if (count == 0 || items[0].len == 0)
        return refuse(walk, node, field->key, "a list that starts with a program");
    argv = arena_alloc_array(&walk->config->arena, (size_t)count + 1, sizeof *argv);
    if (!argv)
        return out_of_memory(walk);
    for (uint32_t i = 0; i < count; i++)
        argv[i] = items[i].data; /* arena_str ends its copies with NUL */
    memcpy((char *)record + field->offset, &argv, sizeof argv);
    return 0;
}

static bool variable_name_valid(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];

        if (!(c == '_' || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
              (i > 0 && c >= '0' && c <= '9')))
            return false;
    }
    return name.len > 0 && name.len <= BOUND_NAME_BYTES;
}

static int set_variables(struct walk *walk, const yaml_node_t *node,
                         const struct config_field *field, void *record)
{
    const char **list;
    size_t count;

    if (node->type != YAML_MAPPING_NODE || mapping_count(node) > (size_t)field->max)
        return refuse(walk, node, field->key, "a mapping of names to texts");
    count = mapping_count(node);
    list = arena_alloc_array(&walk->config->arena, count + 1, sizeof *list);
    for (size_t i = 0; i < count && list; i++) {
        yaml_node_t *name = node_at(walk, node->data.mapping.pairs.start[i].key);
        yaml_node_t *value = node_at(walk, node->data.mapping.pairs.start[i].value);

        if (name->type != YAML_SCALAR_NODE || !variable_name_valid(scalar_text(name)))
            return refuse(walk, name, field->key, "a mapping whose names are variable names");
        if (value->type != YAML_SCALAR_NODE || !text_usable(scalar_text(value)))
            return refuse(walk, value, field->key, "a mapping of names to texts");
        list[i] = arena_format(&walk->config->arena, STR_FMT "=" STR_FMT,
                               STR_ARG(scalar_text(name)), STR_ARG(scalar_text(value))).data;
        if (!list[i])
            return out_of_memory(walk);
    }
    if (!list)
        return out_of_memory(walk);
    memcpy((char *)record + field->offset, &list, sizeof list);
    return 0;
}

/* A YAML scalar as the JSON value it looks like: quoted is always text. */
static struct str scalar_json(struct walk *walk, const yaml_node_t *node)
{
    BUF_AUTO struct buf json = BUF_INIT(8 * CONFIG_TEXT_BYTES_MAX);
    struct str text = scalar_text(node);

    if (is_null(node))
        return STR("null");
    if (is_plain(node) && json_check(text, NULL, NULL) == 0)
        return arena_str(&walk->config->arena, text);
    json_write_string(&json, text);
    return json.failed ? STR_NONE : arena_str(&walk->config->arena, buf_view(&json));
}

static int set_metadata(struct walk *walk, const yaml_node_t *node,
                        const struct config_field *field, void *record)
{
    struct priority_rule *rule = record;
    yaml_node_t *pointer;
    yaml_node_t *value;

    if (node->type != YAML_MAPPING_NODE || mapping_count(node) != 1)
        return refuse(walk, node, field->key, "one pair such as {/tenant: gold}");
    pointer = node_at(walk, node->data.mapping.pairs.start->key);
    value = node_at(walk, node->data.mapping.pairs.start->value);
    if (pointer->type != YAML_SCALAR_NODE || !text_usable(scalar_text(pointer)) ||
        scalar_text(pointer).len == 0 || !json_pointer_valid(scalar_text(pointer)))
        return refuse(walk, pointer, field->key, "a JSON pointer such as /tenant and its value");
    if (value->type != YAML_SCALAR_NODE || !text_usable(scalar_text(value)))
        return refuse(walk, value, field->key, "compared with a text, number, true, false or null");
    rule->metadata_pointer = arena_str(&walk->config->arena, scalar_text(pointer));
    rule->metadata_equals = scalar_json(walk, value);
    if (!rule->metadata_pointer.data || !rule->metadata_equals.data)
        return out_of_memory(walk);
    return 0;
}

struct rate_parts {
    int64_t count;
    int64_t per_ms;
    int64_t burst;
};

static int walk_mapping(struct walk *walk, const yaml_node_t *node,
                        const struct config_record *type, const char *group, void *record);

/* {count: 100, per: 1s, burst: 20} */
static int set_rate_parts(struct walk *walk, const yaml_node_t *node,
                          const struct config_field *field, void *record)
{
    static const struct config_field fields[] = {
        {.key = "count", .kind = CONFIG_INT, .offset = offsetof(struct rate_parts, count),
         .min = 1, .max = 1000000000, .required = true},
        {.key = "per", .kind = CONFIG_DURATION, .offset = offsetof(struct rate_parts, per_ms),
         .min = 1, .max = BOUND_DELAY_MS, .fallback = "1s"},
        {.key = "burst", .kind = CONFIG_INT, .offset = offsetof(struct rate_parts, burst),
         .min = 1, .max = 1000000000},
        {0}};
    static const struct config_record type = {"rate", sizeof(struct rate_parts), fields, NULL};
    struct rate_parts parts = {0};
    struct rate_rule rate;

    TRY(config_set_defaults(&parts, &type, &walk->config->arena, walk->err));
    TRY(walk_mapping(walk, node, &type, NULL, &parts));
    rate = (struct rate_rule){parts.count, parts.per_ms, parts.burst};
    memcpy((char *)record + field->offset, &rate, sizeof rate);
    return 0;
}

static int set_list(struct walk *walk, const yaml_node_t *node, const struct config_field *field,
                    void *record)
{
    const struct config_record *type = field->record;
    size_t count = node->type == YAML_SEQUENCE_NODE ? sequence_count(node) : 0;
    uint32_t stored = (uint32_t)count;
    char *entries;

    if (node->type != YAML_SEQUENCE_NODE && !is_null(node))
        return refuse(walk, node, field->key, "a list of entries that start with '-'");
    if (count > (size_t)field->max)
        return refuse(walk, node, field->key, "a shorter list");
    entries = arena_alloc_array(&walk->config->arena, count + 1, type->bytes);
    if (!entries)
        return out_of_memory(walk);
    for (size_t i = 0; i < count; i++) {
        yaml_node_t *item = node_at(walk, node->data.sequence.items.start[i]);
        struct err why;

        TRY(config_set_defaults(entries + i * type->bytes, type, &walk->config->arena, walk->err));
        TRY(walk_mapping(walk, item, type, NULL, entries + i * type->bytes));
        if (type->check && type->check(entries + i * type->bytes, &why) < 0)
            TRY(at_line(walk, item, &why));
    }
    memcpy((char *)record + field->offset, &entries, sizeof entries);
    memcpy((char *)record + field->count_offset, &stored, sizeof stored);
    return 0;
}

/* [a, b] as "a b"; a word with a space is refused as one that is not known. */
static int set_scopes(struct walk *walk, const yaml_node_t *node, const struct config_field *field,
                      void *record)
{
    scope_set scopes = 0;
    struct str *words;
    uint32_t count;

    TRY(read_texts(walk, node, field, &words, &count));
    for (uint32_t i = 0; i < count; i++)
        if (!scopes_add_word(&scopes, words[i]))
            return err_set(walk->err, ERR_INVALID, "%s:%lu: %s: there is no scope or role '" STR_FMT
                           "'", walk->name, line_of(node), field->key,
                           STR_ARG(str_cut(words[i], 64)));
    if (!scopes)
        return refuse(walk, node, field->key, "a list with a scope or a role");
    memcpy((char *)record + field->offset, &scopes, sizeof scopes);
    return 0;
}

static int set_ranges(struct walk *walk, const yaml_node_t *node, const struct config_field *field,
                      void *record)
{
    struct address_range *ranges;
    struct str *texts;
    uint32_t count;

    TRY(read_texts(walk, node, field, &texts, &count));
    ranges = arena_alloc_array(&walk->config->arena, count + 1, sizeof *ranges);
    if (!ranges)
        return out_of_memory(walk);
    for (uint32_t i = 0; i < count; i++)
        if (!address_range_parse(texts[i], &ranges[i]))
            return err_set(walk->err, ERR_INVALID, "%s:%lu: %s: '" STR_FMT "' is not an address "
                           "range such as 10.1.0.0/16, 2001:db8::/32 or 192.0.2.7 (no bit may be "
                           "set behind the prefix)", walk->name, line_of(node), field->key,
                           STR_ARG(str_cut(texts[i], 64)));
    memcpy((char *)record + field->offset, &ranges, sizeof ranges);
    memcpy((char *)record + field->count_offset, &count, sizeof count);
    return 0;
}

static int set_field(struct walk *walk, const yaml_node_t *node, const struct config_field *field,
                     void *record);

/* A value of a mapping of names: the record's second field, or a mapping of those behind it. */
static int set_named(struct walk *walk, const yaml_node_t *node, const struct config_record *type,
                     void *entry)
{
    if (node->type != YAML_MAPPING_NODE || type->fields[1].kind == CONFIG_SCOPES)
        return set_field(walk, node, &type->fields[1], entry);
    return walk_mapping(walk, node, type, NULL, entry);
}

/* The mapping's keys as the first field of the record, its values as the others. */
static int set_groups(struct walk *walk, const yaml_node_t *node, const struct config_field *field,
                      void *record)
{
    const struct config_record *type = field->record;
    uint32_t count;
    char *entries;

    if (node->type != YAML_MAPPING_NODE || mapping_count(node) > (size_t)field->max)
        return refuse(walk, node, field->key, type->fields[1].kind == CONFIG_SCOPES
                      ? "a mapping of names to scopes" : "a mapping of names to values");
    count = (uint32_t)mapping_count(node);
    entries = arena_alloc_array(&walk->config->arena, count + 1, type->bytes);
    if (!entries)
        return out_of_memory(walk);
    for (uint32_t i = 0; i < count; i++) {
        yaml_node_pair_t *pair = &node->data.mapping.pairs.start[i];
        char *entry = entries + i * type->bytes;
        struct err why;

        if (is_repeated(walk, node, i, scalar_text(node_at(walk, pair->key))))
            return refuse(walk, node_at(walk, pair->key), field->key,
                          "without names that are given twice");
        TRY(config_set_defaults(entry, type, &walk->config->arena, walk->err));
        TRY(set_field(walk, node_at(walk, pair->key), &type->fields[0], entry));
        TRY(set_named(walk, node_at(walk, pair->value), type, entry));
        if (type->check && type->check(entry, &why) < 0)
            TRY(at_line(walk, node_at(walk, pair->key), &why));
    }
    memcpy((char *)record + field->offset, &entries, sizeof entries);
    memcpy((char *)record + field->count_offset, &count, sizeof count);
    return 0;
}

static int set_json(struct walk *walk, const yaml_node_t *node, const struct config_field *field,
                    void *record)
{
    BUF_AUTO struct buf json = BUF_INIT(CONFIG_BYTES_MAX);
    struct str text;

    if (node->type != YAML_MAPPING_NODE || !config_write_json(walk->document, node, &json) ||
        json_check(buf_view(&json), NULL, NULL) < 0)
        return refuse(walk, node, field->key, "a mapping that could be JSON");
    text = arena_str(&walk->config->arena, buf_view(&json));
    if (!text.data)
        return out_of_memory(walk);
    memcpy((char *)record + field->offset, &text, sizeof text);
    return 0;
}

static int set_field(struct walk *walk, const yaml_node_t *node, const struct config_field *field,
                     void *record)
{
    struct err why;

    if (field->kind == CONFIG_TEXTS)
        return set_texts(walk, node, field, record);
    if (field->kind == CONFIG_ARGV)
        return set_argv(walk, node, field, record);
    if (field->kind == CONFIG_VARIABLES)
        return set_variables(walk, node, field, record);
    if (field->kind == CONFIG_METADATA)
        return set_metadata(walk, node, field, record);
    if (field->kind == CONFIG_JSON)
        return set_json(walk, node, field, record);
    if (field->kind == CONFIG_LIST)
        return set_list(walk, node, field, record);
    if (field->kind == CONFIG_RANGES)
        return set_ranges(walk, node, field, record);
    if (field->kind == CONFIG_GROUPS)
        return set_groups(walk, node, field, record);
    if (field->kind == CONFIG_SCOPES && node->type != YAML_SCALAR_NODE)
        return set_scopes(walk, node, field, record);
    if (field->kind == CONFIG_RATE && node->type == YAML_MAPPING_NODE)
        return set_rate_parts(walk, node, field, record);
    if (node->type != YAML_SCALAR_NODE)
        return refuse(walk, node, field->key, "one value, not a list or mapping");
    if (is_null(node))
        return refuse(walk, node, field->key, "given a value, or left out");
    if (config_set_scalar(record, field, scalar_text(node), &walk->config->arena, &why) < 0)
        return at_line(walk, node, &why);
    return 0;
}

/* The part of a field's key that stands in this mapping, or NULL: "completed" of
 * "retention.completed" in group "retention". */
static const char *key_in_group(const struct config_field *field, const char *group)
{
    size_t len = group ? strlen(group) : 0;

    if (!group)
        return field->key;
    return strncmp(field->key, group, len) == 0 && field->key[len] == '.' ? field->key + len + 1
                                                                          : NULL;
}

static const struct config_field *find_field(const struct config_record *type, const char *group,
                                             struct str key)
{
    for (const struct config_field *field = type->fields; field->key; field++) {
        const char *own = key_in_group(field, group);

        if (own && str_is(key, own) && !field->outside_file && !strchr(own, '.'))
            return field;
    }
    return NULL;
}

/* "retention" when some key starts with "retention.", and "retention.log_levels" inside of it; the
 * returned text is its own copy. */
static const char *find_group(struct walk *walk, const struct config_record *type,
                              const char *group, struct str key)
{
    for (const struct config_field *field = type->fields; field->key; field++) {
        const char *own = key_in_group(field, group);
        const char *point = own ? strchr(own, '.') : NULL;

        if (point && str_eq(str_span(own, (size_t)(point - own)), key))
            return arena_format(&walk->config->arena, "%s%s" STR_FMT, group ? group : "",
                                group ? "." : "", STR_ARG(key)).data;
    }
    return NULL;
}

static int unknown_key(struct walk *walk, const yaml_node_t *node, const struct config_record *type,
                       const char *group, struct str key)
{
    struct suggest suggest;
    char words[CONFIG_SETTINGS_MAX][32];
    const char *place = group ? group : type->name;
    uint32_t count = 0;

    suggest_init(&suggest, key);
    for (const struct config_field *field = type->fields; field->key; field++) {
        const char *own = key_in_group(field, group);

        if (own && field->outside_file && str_is(key, own))
            return err_set(walk->err, ERR_INVALID, "%s:%lu: '%s' is not read from a file; use %s%s",
                           walk->name, line_of(node), own, field->env ? "" : "--",
                           field->env ? field->env : field->flag);
        if (!own || field->outside_file || count == CONFIG_SETTINGS_MAX)
            continue;
        snprintf(words[count], sizeof words[count], "%.*s", (int)strcspn(own, "."), own);
        suggest_offer(&suggest, words[count++]);
    }
    return err_set(walk->err, ERR_INVALID, "%s:%lu: unknown key '%.*s'%s%s%s%s%s", walk->name,
                   line_of(node), key.len > 60 ? 60 : (int)key.len, key.data,
                   *place ? " in " : "", place, suggest.best ? "; did you mean '" : "",
                   suggest.best ? suggest.best : "", suggest.best ? "'?" : "");
}

static void note_origin(struct walk *walk, const yaml_node_t *node,
                        const struct config_field *field)
{
    ptrdiff_t index = field - config_root.fields;

    walk->config->origins[index] = (struct config_value_origin){
        ORIGIN_FILE,
        arena_format(&walk->config->arena, "%s:%lu", walk->name, line_of(node))};
}

static int walk_pair(struct walk *walk, yaml_node_t *key_node, yaml_node_t *value,
                     const struct config_record *type, const char *group, void *record)
{
    struct str key = scalar_text(key_node);
    const struct config_field *field = find_field(type, group, key);
    const char *inner = !field ? find_group(walk, type, group, key) : NULL;

    if (inner)
        return is_null(value) ? 0 : walk_mapping(walk, value, type, inner, record);
    if (!field)
        return unknown_key(walk, key_node, type, group, key);
    TRY(set_field(walk, value, field, record));
    if (type == &config_root)
        note_origin(walk, key_node, field);
    return 0;
}

static int check_required(struct walk *walk, const yaml_node_t *node,
                          const struct config_record *type)
{
    for (const struct config_field *field = type->fields; field->key; field++) {
        bool found = !field->required;

        for (size_t i = 0; i < mapping_count(node) && !found; i++)
            found = str_is(scalar_text(node_at(walk, node->data.mapping.pairs.start[i].key)),
                           field->key);
        if (!found)
            return err_set(walk->err, ERR_INVALID, "%s:%lu: this entry of %s has no '%s'",
                           walk->name, line_of(node), type->name, field->key);
    }
    return 0;
}

static int walk_mapping(struct walk *walk, const yaml_node_t *node,
                        const struct config_record *type, const char *group, void *record)
{
    int rc = 0;

    if (node->type != YAML_MAPPING_NODE)
        return refuse(walk, node, group ? group : *type->name ? type->name : "the file",
                      "made of 'key: value' lines");
    for (size_t i = 0; i < mapping_count(node) && rc == 0; i++) {
        yaml_node_pair_t *pair = &node->data.mapping.pairs.start[i];
        yaml_node_t *key = node_at(walk, pair->key);

        if (key->type != YAML_SCALAR_NODE || !text_usable(scalar_text(key)))
            return refuse(walk, key, "a key", "a single word");
        if (i > 2 * CONFIG_SETTINGS_MAX || is_repeated(walk, node, i, scalar_text(key)))
            return err_set(walk->err, ERR_INVALID, "%s:%lu: key '%.60s' is given twice",
                           walk->name, line_of(key), (const char *)key->data.scalar.value);
        rc = walk_pair(walk, key, node_at(walk, pair->value), type, group, record);
    }
    return rc < 0 || group ? rc : check_required(walk, node, type);
}

int config_walk(struct config *config, yaml_document_t *document, const char *name,
                struct err *err)
{
    struct walk walk = {.document = document, .name = name, .config = config, .err = err};
    yaml_node_t *root = yaml_document_get_root_node(document);

    if (!root || is_null(root)) /* an empty file is a file of defaults */
        return 0;
    TRY(check_size(&walk, root, 0));
    TRY(walk_mapping(&walk, root, &config_root, NULL, config));
    return config_check(config, name, err);
}
