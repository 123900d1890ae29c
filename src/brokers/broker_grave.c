#include "brokers/broker_grave.h"

#include "base/clock.h"

#define CONFIRM_US (10 * CLOCK_SECOND_US)

struct str broker_grave_queue(const struct broker_input *input, struct arena *arena)
{
    if (input->dead_letters.data)
        return input->dead_letters;
    return arena_format(arena, STR_FMT ".dead", STR_ARG(input->queue));
}

static int open_grave(struct broker_grave *grave, const struct broker_rule *rule,
                      const struct broker_input *input, struct str queue, struct err *err)
{
    if (grave->link.state)
        return 0;
    TRY(broker_link_open(&grave->link, rule, err));
    TRY(broker_link_queue(&grave->link, rule, queue, input->queue_type, err));
    amqp_confirm_select(grave->link.state, BROKER_CHANNEL);
    return broker_link_check(&grave->link, "the broker confirms nothing", err);
}

/* The headers it came with, ours in place of those of an earlier time. */
static int add_headers(const struct broker_input *input, const struct dead_letter *letter,
                       amqp_basic_properties_t *properties, struct arena *arena, struct err *err)
{
    const char *const names[] = {BROKER_REASON_HEADER, BROKER_QUEUE_HEADER};
    const struct str values[] = {letter->reason, input->queue};
    const amqp_table_t *given = &properties->headers;
    int count = properties->_flags & AMQP_BASIC_HEADERS_FLAG ? given->num_entries : 0, kept = 0;
    amqp_table_entry_t *entries =
        TRY_MEMORY(arena_alloc_array(arena, (size_t)count + 2, sizeof *entries));

    for (int i = 0; i < count; i++)
        if (!str_is(broker_str(given->entries[i].key), names[0]) &&
            !str_is(broker_str(given->entries[i].key), names[1]))
            entries[kept++] = given->entries[i];
    for (int i = 0; i < 2; i++)
        entries[kept++] = (amqp_table_entry_t){
            .key = amqp_cstring_bytes(names[i]),
            .value = {.kind = AMQP_FIELD_KIND_UTF8, .value = {.bytes = broker_bytes(values[i])}}};
    properties->headers = (amqp_table_t){.num_entries = kept, .entries = entries};
    properties->delivery_mode = AMQP_DELIVERY_PERSISTENT;
    properties->_flags |= AMQP_BASIC_HEADERS_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG;
    /* The broker would refuse another's name, and drop it once it is old. */
    properties->_flags &= ~(amqp_flags_t)(AMQP_BASIC_USER_ID_FLAG | AMQP_BASIC_EXPIRATION_FLAG);
    return 0;
}

static int read_answer(struct broker_grave *grave, const amqp_frame_t *frame, struct err *err)
{
    if (frame->frame_type != AMQP_FRAME_METHOD)
        return 0; /* the rest of a returned message */
    switch (frame->payload.method.id) {
    case AMQP_BASIC_ACK_METHOD:
        return 1;
    case AMQP_CONNECTION_BLOCKED_METHOD:
        grave->blocked = true;
        return 0;
    case AMQP_CONNECTION_UNBLOCKED_METHOD:
        grave->blocked = false;
        grave->end_us = clock_boot_us() + CONFIRM_US;
        return 0;
    case AMQP_BASIC_NACK_METHOD:
        return err_set(err, ERR_UNAVAILABLE, "the broker does not take a dead letter; their queue "
                       "may be full");
    case AMQP_BASIC_RETURN_METHOD: /* an Ack follows all the same */
        return err_set(err, ERR_UNAVAILABLE, "the dead-letter queue is gone");
    default:
        return broker_link_ended(&frame->payload.method, "a dead letter was refused", err);
    }
}

static int ask(struct broker_grave *grave, struct err *err)
{
    amqp_frame_t frame;
    int rc;

    while ((rc = broker_link_frame(&grave->link, &frame, 0, err)) > 0) {
        rc = read_answer(grave, &frame, err);
        amqp_maybe_release_buffers(grave->link.state);
        if (rc != 0)
            break;
    }
    if (rc == 0 && !grave->blocked && clock_boot_us() > grave->end_us)
        return err_set(err, ERR_UNAVAILABLE, "the broker does not confirm a dead letter");
    return rc;
}

int broker_grave_ask(struct broker_grave *grave, struct err *err)
{
    int rc = ask(grave, err);

    if (rc < 0)
        broker_grave_close(grave);
    else if (rc > 0)
        grave->asked = false;
    return rc;
}

static int put(struct broker_grave *grave, const struct broker_rule *rule,
               const struct broker_input *input, const struct dead_letter *letter,
               struct err *err)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    amqp_basic_properties_t properties = *letter->properties;
    struct str queue = broker_grave_queue(input, &arena);
    int status;

    TRY_MEMORY(queue.data);
    TRY(open_grave(grave, rule, input, queue, err));
    TRY(add_headers(input, letter, &properties, &arena, err));
    status = amqp_basic_publish(grave->link.state, BROKER_CHANNEL, amqp_empty_bytes,
                                broker_bytes(queue), 1, 0, &properties,
                                broker_bytes(letter->body));
    return status == AMQP_STATUS_OK
               ? 0 : broker_link_failed(status, "a dead letter cannot be sent", err);
}

int broker_grave_put(struct broker_grave *grave, const struct broker_rule *rule,
                     const struct broker_input *input, const struct dead_letter *letter,
                     struct err *err)
{
    if (put(grave, rule, input, letter, err) < 0) {
        broker_grave_close(grave);
        return -(int)err->code;
    }
    grave->asked = true;
    grave->end_us = clock_boot_us() + CONFIRM_US;
    return 0;
}

void broker_grave_close(struct broker_grave *grave)
{
    broker_link_close(&grave->link);
    grave->asked = grave->blocked = false;
}
