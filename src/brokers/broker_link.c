#include "brokers/broker_link.h"

#include "base/clock.h"
#include "core/broker/broker_url.h"

#include <amqp_ssl_socket.h>
#include <amqp_tcp_socket.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#define CONNECT_S 5
#define FRAME_BYTES_MAX 131072

/* ---- what went wrong ---- */

static int refuse(struct err *err, const char *what, int code, amqp_bytes_t text)
{
    return err_set(err, ERR_UNAVAILABLE, "%s: the broker says %d " STR_FMT, what, code,
                   STR_ARG(str_cut(broker_str(text), 200)));
}

int broker_link_ended(const amqp_method_t *method, const char *what, struct err *err)
{
    if (method->id == AMQP_CHANNEL_CLOSE_METHOD) {
        const amqp_channel_close_t *close = method->decoded;

        return refuse(err, what, close->reply_code, close->reply_text);
    }
    if (method->id == AMQP_CONNECTION_CLOSE_METHOD) {
        const amqp_connection_close_t *close = method->decoded;

        return refuse(err, what, close->reply_code, close->reply_text);
    }
    return err_set(err, ERR_UNAVAILABLE, "%s: the broker answers with an unexpected method", what);
}

int broker_link_failed(int status, const char *what, struct err *err)
{
    return err_set(err, ERR_UNAVAILABLE, "%s: %s", what, amqp_error_string2(status));
}

static int check_reply(amqp_rpc_reply_t reply, const char *what, struct err *err)
{
    if (reply.reply_type == AMQP_RESPONSE_NORMAL)
        return 0;
    if (reply.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION)
        return broker_link_ended(&reply.reply, what, err);
    return broker_link_failed(reply.library_error, what, err);
}

int broker_link_check(struct broker_link *link, const char *what, struct err *err)
{
    return check_reply(amqp_get_rpc_reply(link->state), what, err);
}

/* ---- open and close ---- */

/* librabbitmq compares names but no addresses, so OpenSSL does that. */
static int set_tls(amqp_socket_t *socket, const struct broker_tls *tls, const char *host,
                   struct arena *arena, struct err *err)
{
    X509_VERIFY_PARAM *names = SSL_CTX_get0_param(amqp_ssl_socket_get_context(socket));
    char *ca = tls->ca.data ? arena_cstr(arena, tls->ca) : NULL;
    int status = AMQP_STATUS_OK;

    amqp_ssl_socket_set_verify_peer(socket, 1);
    amqp_ssl_socket_set_verify_hostname(socket, 0);
    if (X509_VERIFY_PARAM_set1_ip_asc(names, host) != 1 &&
        X509_VERIFY_PARAM_set1_host(names, host, 0) != 1)
        return err_no_memory(err);
    if (ca)
        status = amqp_ssl_socket_set_cacert(socket, ca);
    else if (SSL_CTX_set_default_verify_paths(amqp_ssl_socket_get_context(socket)) != 1)
        status = AMQP_STATUS_SSL_ERROR;
    if (status != AMQP_STATUS_OK)
        return err_set(err, ERR_UNAVAILABLE, "the CAs of '%s' cannot be read",
                       ca ? ca : "the system");
    if (tls->cert.data && amqp_ssl_socket_set_key(socket, arena_cstr(arena, tls->cert),
                                                  arena_cstr(arena, tls->key)) != AMQP_STATUS_OK)
        return err_set(err, ERR_UNAVAILABLE, "tls.cert or tls.key cannot be read, or they do not "
                       "belong together");
    if (amqp_ssl_socket_set_ssl_versions(socket, AMQP_TLSv1_2, AMQP_TLSvLATEST) != AMQP_STATUS_OK)
        return err_set(err, ERR_UNAVAILABLE, "this build of librabbitmq has no TLS 1.2");
    return arena->failed ? err_no_memory(err) : 0;
}

static int connect_socket(struct broker_link *link, const struct broker_rule *rule,
                          const struct broker_url *url, struct arena *arena, struct err *err)
{
    struct timeval wait = {.tv_sec = CONNECT_S};
    amqp_socket_t *socket = url->tls ? amqp_ssl_socket_new(link->state)
                                     : amqp_tcp_socket_new(link->state);
    const char *host = url->host.data; /* a C string */
    unsigned silent_ms = (unsigned)(2 * rule->heartbeat_ms);
    int status;

    TRY_MEMORY(socket);
    if (url->tls)
        TRY(set_tls(socket, &rule->tls, host, arena, err));
    status = amqp_socket_open_noblock(socket, host, (int)url->port, &wait);
    if (status != AMQP_STATUS_OK)
        return broker_link_failed(status, "the broker cannot be reached", err);
    link->fd = amqp_get_sockfd(link->state);
    setsockopt(link->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silent_ms, sizeof silent_ms);
    return 0;
}

static amqp_table_entry_t able(const char *name)
{
    return (amqp_table_entry_t){.key = amqp_cstring_bytes(name),
                                .value = {.kind = AMQP_FIELD_KIND_BOOLEAN, .value.boolean = 1}};
}

static int log_in(struct broker_link *link, const struct broker_rule *rule,
                  const struct broker_url *url, struct arena *arena, struct err *err)
{
    struct timeval wait = {.tv_sec = BROKER_RPC_S};
    struct str password = rule->password.data ? rule->password : url->password;
    /* so that it says when a queue is gone, and when it blocks those who publish */
    amqp_table_entry_t can[] = {able("consumer_cancel_notify"), able("connection.blocked")};
    amqp_table_entry_t entries[] = {
        {.key = amqp_cstring_bytes("connection_name"),
         .value = {.kind = AMQP_FIELD_KIND_UTF8, .value.bytes = amqp_cstring_bytes("perdura")}},
        {.key = amqp_cstring_bytes("capabilities"),
         .value = {.kind = AMQP_FIELD_KIND_TABLE,
                   .value.table = {.num_entries = 2, .entries = can}}}};
    amqp_table_t properties = {.num_entries = 2, .entries = entries};

    amqp_set_handshake_timeout(link->state, &wait);
    amqp_set_rpc_timeout(link->state, &wait);
    return check_reply(amqp_login_with_properties(
                           link->state, arena_cstr(arena, url->vhost), 0, FRAME_BYTES_MAX,
                           (int)(rule->heartbeat_ms / 1000), &properties, AMQP_SASL_METHOD_PLAIN,
                           arena_cstr(arena, url->user), arena_cstr(arena, password)),
                       "the broker does not let us in", err);
}

static int open_all(struct broker_link *link, const struct broker_rule *rule, struct err *err)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct broker_url url;

    TRY(broker_url_parse(rule->url, &arena, &url, err));
    link->state = TRY_MEMORY(amqp_new_connection());
    TRY(connect_socket(link, rule, &url, &arena, err));
    TRY(log_in(link, rule, &url, &arena, err));
    amqp_channel_open(link->state, BROKER_CHANNEL);
    return broker_link_check(link, "the broker opens no channel", err);
}

int broker_link_open(struct broker_link *link, const struct broker_rule *rule, struct err *err)
{
    *link = (struct broker_link){.fd = -1};
    if (open_all(link, rule, err) == 0)
        return 0;
    broker_link_close(link);
    return -(int)err->code;
}

void broker_link_close(struct broker_link *link)
{
    if (!link->state)
        return;
    if (link->fd >= 0)
        shutdown(link->fd, SHUT_RDWR); /* or TLS would wait for the other side */
    amqp_destroy_connection(link->state);
    *link = (struct broker_link){.fd = -1};
}

/* ---- queues ---- */

static bool is_missing(const amqp_rpc_reply_t *reply)
{
    const amqp_channel_close_t *close = reply->reply.decoded;

    return reply->reply_type == AMQP_RESPONSE_SERVER_EXCEPTION &&
           reply->reply.id == AMQP_CHANNEL_CLOSE_METHOD && close->reply_code == AMQP_NOT_FOUND;
}

int broker_link_queue(struct broker_link *link, const struct broker_rule *rule, struct str queue,
                      struct str type, struct err *err)
{
    amqp_table_entry_t entry = {
        .key = amqp_cstring_bytes("x-queue-type"),
        .value = {.kind = AMQP_FIELD_KIND_UTF8, .value = {.bytes = broker_bytes(type)}}};
    amqp_table_t arguments = {.num_entries = type.data ? 1 : 0, .entries = &entry};
    amqp_rpc_reply_t reply;

    amqp_queue_declare(link->state, BROKER_CHANNEL, broker_bytes(queue), 1, 0, 0, 0,
                       amqp_empty_table);
    reply = amqp_get_rpc_reply(link->state);
    if (!is_missing(&reply))
        return check_reply(reply, "the queue cannot be used", err);
    broker_link_close(link); /* the broker has closed the channel */
    TRY(broker_link_open(link, rule, err));
    amqp_queue_declare(link->state, BROKER_CHANNEL, broker_bytes(queue), 0, 1, 0, 0, arguments);
    return broker_link_check(link, "the queue is not there and cannot be made", err);
}

/* ---- frames ---- */

int broker_link_frame(struct broker_link *link, amqp_frame_t *frame, int64_t wait_us,
                      struct err *err)
{
    struct timeval wait = {.tv_sec = wait_us / CLOCK_SECOND_US,
                           .tv_usec = wait_us % CLOCK_SECOND_US};
    int status = amqp_simple_wait_frame_noblock(link->state, frame, &wait);

    if (status == AMQP_STATUS_TIMEOUT)
        return 0;
    return status == AMQP_STATUS_OK ? 1 : broker_link_failed(status, "the connection broke", err);
}
