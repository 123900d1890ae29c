/* The configuration file as YAML: bounded before libyaml builds its tree, then handed to
 * config_walk.c, which knows the keys. One thread. */
#include "cli/config/config_walk.h"

static int yaml_refused(const yaml_parser_t *parser, const char *name, struct err *err)
{
    return err_set(err, ERR_INVALID, "%s:%lu: %s", name,
                   (unsigned long)parser->problem_mark.line + 1,
                   parser->problem ? parser->problem : "not valid YAML");
}

/* Bounds of one look at the events: libyaml's own trees take quadratic time for deep nesting and
 * for many anchors, so both are refused before a tree is built. A second document would be ignored
 * without a word, so it is refused too. */
struct shape {
    uint32_t documents;
    uint32_t depth;
    uint32_t nodes;
    uint32_t anchors;
};

static int check_event(struct shape *shape, const yaml_event_t *event, const char *name,
                       struct err *err)
{
    unsigned long line = (unsigned long)event->start_mark.line + 1;
    bool opens =
        event->type == YAML_SEQUENCE_START_EVENT || event->type == YAML_MAPPING_START_EVENT;
    bool has_anchor =
        (event->type == YAML_SCALAR_EVENT && event->data.scalar.anchor) ||
        (event->type == YAML_SEQUENCE_START_EVENT && event->data.sequence_start.anchor) ||
        (event->type == YAML_MAPPING_START_EVENT && event->data.mapping_start.anchor);

    if (opens)
        shape->depth++;
    if (event->type == YAML_SEQUENCE_END_EVENT || event->type == YAML_MAPPING_END_EVENT)
        shape->depth--;
    shape->nodes++;
    shape->anchors += has_anchor;
    shape->documents += event->type == YAML_DOCUMENT_START_EVENT;
    if (shape->documents > 1)
        return err_set(err, ERR_INVALID, "%s:%lu: a second document; remove the lines from this "
                       "'---' on", name, line);
    if (shape->depth > CONFIG_DEPTH_MAX)
        return err_set(err, ERR_INVALID, "%s:%lu: nested deeper than %d levels", name, line,
                       CONFIG_DEPTH_MAX);
    if (shape->nodes > 2 * CONFIG_NODES_MAX)
        return err_set(err, ERR_TOO_LARGE, "%s has more than %d values", name, CONFIG_NODES_MAX);
    if (shape->anchors > CONFIG_ANCHORS_MAX)
        return err_set(err, ERR_TOO_LARGE, "%s:%lu: more than %d anchors", name, line,
                       CONFIG_ANCHORS_MAX);
    return 0;
}

static int check_shape(struct str text, const char *name, struct err *err)
{
    struct shape shape = {0};
    yaml_parser_t parser;
    bool ended = false;
    int rc = 0;

    if (!yaml_parser_initialize(&parser))
        return err_set(err, ERR_MEMORY, "there is not enough memory to read %s", name);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text.data, text.len);
    while (!ended && rc == 0) {
        yaml_event_t event;

        if (!yaml_parser_parse(&parser, &event)) {
            rc = yaml_refused(&parser, name, err);
            break;
        }
        rc = check_event(&shape, &event, name, err);
        ended = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return rc;
}

int config_parse(struct config *config, struct str text, const char *name, struct err *err)
{
    yaml_document_t document;
    yaml_parser_t parser;
    int rc;

    if (text.len > CONFIG_BYTES_MAX)
        return err_set(err, ERR_TOO_LARGE, "%s is larger than 1 MiB", name);
    TRY(check_shape(text, name, err));
    if (!yaml_parser_initialize(&parser))
        return err_set(err, ERR_MEMORY, "there is not enough memory to read %s", name);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text.data, text.len);
    if (!yaml_parser_load(&parser, &document)) {
        rc = yaml_refused(&parser, name, err);
        yaml_parser_delete(&parser);
        return rc;
    }
    rc = config_walk(config, &document, name, err);
    yaml_document_delete(&document);
    yaml_parser_delete(&parser);
    return rc;
}
