/* From YAML to JSON: a plain scalar is the JSON value it looks like, a quoted one is a text. */
#include "cli/config/config_json.h"

#include "base/json.h"

static void write_scalar(const yaml_node_t *node, struct buf *out)
{
    struct str text = str_span((const char *)node->data.scalar.value, node->data.scalar.length);
    bool plain = node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;

    if (plain && (text.len == 0 || str_is(text, "~")))
        buf_text(out, "null");
    else if (plain && json_check(text, NULL, NULL) == 0)
        buf_str(out, text);
    else
        json_write_string(out, text);
}

static bool write_sequence(yaml_document_t *document, const yaml_node_t *node, struct buf *out)
{
    buf_byte(out, '[');
    for (yaml_node_item_t *item = node->data.sequence.items.start;
         item < node->data.sequence.items.top; item++) {
        json_comma(out);
        if (!config_write_json(document, yaml_document_get_node(document, *item), out))
            return false;
    }
    buf_byte(out, ']');
    return true;
}

static bool write_mapping(yaml_document_t *document, const yaml_node_t *node, struct buf *out)
{
    buf_byte(out, '{');
    for (yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = yaml_document_get_node(document, pair->key);

        if (key->type != YAML_SCALAR_NODE)
            return false;
        json_comma(out);
        json_write_string(out, str_span((const char *)key->data.scalar.value,
                                        key->data.scalar.length));
        buf_byte(out, ':');
        if (!config_write_json(document, yaml_document_get_node(document, pair->value), out))
            return false;
    }
    buf_byte(out, '}');
    return true;
}

bool config_write_json(yaml_document_t *document, const yaml_node_t *node, struct buf *out)
{
    if (node->type == YAML_SEQUENCE_NODE)
        return write_sequence(document, node, out);
    if (node->type == YAML_MAPPING_NODE)
        return write_mapping(document, node, out);
    write_scalar(node, out);
    return true;
}
