#include "brokers/broker_letter.h"

#include "core/broker/broker_message.h"

#include <stdlib.h>

#define FIRST_BYTES 1024      /* most messages are small */
#define WORK_BYTES_MAX ((size_t)64 * 1024 * 1024)
#define HEADERS_PAGE_BYTES 1024

struct letter *letter_new(uint64_t tag)
{
    struct letter *letter = calloc(1, sizeof *letter);

    if (!letter)
        return NULL;
    letter->tag = tag;
    letter->mail.first_bytes = letter->work.first_bytes = FIRST_BYTES;
    letter->work.max_bytes = WORK_BYTES_MAX;
    return letter;
}

void letter_free(struct letter *letter)
{
    if (letter->has_headers)
        empty_amqp_pool(&letter->headers);
    arena_deinit(&letter->mail);
    arena_deinit(&letter->work);
    free(letter->body);
    free(letter);
}

/* Only fields whose flag is set have a value. */
static amqp_bytes_t keep(struct letter *letter, const amqp_basic_properties_t *given,
                         amqp_flags_t flag, amqp_bytes_t bytes)
{
    if (!(given->_flags & flag))
        return amqp_empty_bytes;
    return broker_bytes(arena_str(&letter->mail, broker_str(bytes)));
}

int letter_take_head(struct letter *letter, const amqp_frame_t *frame, struct err *err)
{
    const amqp_basic_properties_t *given = frame->payload.properties.decoded;
    amqp_basic_properties_t *kept = &letter->properties;

    *kept = *given;
#define KEEP(field, flag) kept->field = keep(letter, given, AMQP_BASIC_##flag##_FLAG, given->field)
    KEEP(content_type, CONTENT_TYPE);
    KEEP(content_encoding, CONTENT_ENCODING);
    KEEP(correlation_id, CORRELATION_ID);
    KEEP(reply_to, REPLY_TO);
    KEEP(expiration, EXPIRATION);
    KEEP(message_id, MESSAGE_ID);
    KEEP(type, TYPE);
    KEEP(user_id, USER_ID);
    KEEP(app_id, APP_ID);
    KEEP(cluster_id, CLUSTER_ID);
#undef KEEP
    if (given->_flags & AMQP_BASIC_HEADERS_FLAG) {
        init_amqp_pool(&letter->headers, HEADERS_PAGE_BYTES);
        letter->has_headers = true;
        if (amqp_table_clone(&given->headers, &kept->headers, &letter->headers) != AMQP_STATUS_OK)
            return err_no_memory(err);
    }
    letter->body_bytes = frame->payload.properties.body_size;
    letter->body = malloc(letter->body_bytes + 1);
    return letter->body && !letter->mail.failed ? 0 : err_no_memory(err);
}

bool letter_take_body(struct letter *letter, amqp_bytes_t piece)
{
    size_t left = letter->body_bytes - letter->read_bytes;
    size_t len = piece.len < left ? piece.len : left;

    if (len)
        memcpy(letter->body + letter->read_bytes, piece.bytes, len);
    letter->read_bytes += len;
    return letter->read_bytes == letter->body_bytes;
}

void letter_parse(struct letter *letter, struct str broker, const struct broker_input *input,
                  const struct settings *settings)
{
    struct broker_message message = {.body = str_span(letter->body, letter->body_bytes)};
    struct enqueue_request *request = &letter->request;

    if (letter->properties._flags & AMQP_BASIC_MESSAGE_ID_FLAG)
        message.id = broker_str(letter->properties.message_id);
    arena_reset(&letter->work);
    *request = (struct enqueue_request){.base = {.kind = REQUEST_ENQUEUE, .arena = &letter->work},
                                        .inputs = &letter->input,
                                        .count = 1,
                                        .actor = ACTOR_API};
    letter->input = (struct task_input){0};
    broker_message_parse(broker, input, &message, settings, &letter->work, &letter->input,
                         &request->base.err);
}

/* What may pass is tried again: the broker keeps the message meanwhile. That a namespace is not
 * there is not the message's fault. */
enum letter_state letter_decide(const struct err *answer)
{
    if (answer->code == ERR_NONE)
        return LETTER_SETTLED;
    if (answer->code == ERR_RATE || answer->code == ERR_NOT_FOUND ||
        err_http_status(answer->code) >= 500)
        return LETTER_WAITS;
    return LETTER_REFUSED;
}
