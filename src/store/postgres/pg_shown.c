/* A connection URL without its password. libpq parses it, as it would to connect, and it is rebuilt
 * from the parts that say where. However the password is written (twice, percent-encoded, as a
 * parameter), it is left out. Pure. */
#include "store/postgres/pg_int.h"
#include "store/postgres/pg_store.h"

#include <stdio.h>

#define URL_BYTES_MAX 8192
#define UNREADABLE "postgres://…"

/* libpq does not know our parameter. */
static bool without_schema(struct str where, struct buf *out, struct str *schema)
{
    const char *mark = memchr(where.data, '?', where.len);
    size_t at = mark ? (size_t)(mark - where.data) : where.len;
    char join = '?';

    buf_append(out, where.data, at);
    while (at < where.len) {
        const char *start = where.data + at + 1;
        const char *stop = memchr(start, '&', where.len - at - 1);
        struct str parameter = str_span(start, stop ? (size_t)(stop - start) : where.len - at - 1);

        if (str_starts(parameter, STR("schema="))) {
            *schema = str_span(parameter.data + 7, parameter.len - 7);
        } else {
            buf_byte(out, join);
            buf_str(out, parameter);
            join = '&';
        }
        at += parameter.len + 1;
    }
    buf_byte(out, '\0');
    return !out->failed;
}

static PQconninfoOption *take_apart(struct str where, struct str *schema)
{
    struct buf url = BUF_INIT(URL_BYTES_MAX);
    PQconninfoOption *parts = NULL;
    char *why = NULL; /* may quote the URL */

    *schema = STR_NONE;
    if (where.data && without_schema(where, &url, schema))
        parts = PQconninfoParse(url.data, &why);
    PQfreemem(why);
    buf_deinit(&url);
    return parts;
}

static const char *part_of(const PQconninfoOption *parts, const char *name)
{
    for (; parts->keyword; parts++)
        if (strcmp(parts->keyword, name) == 0)
            return parts->val && *parts->val ? parts->val : NULL;
    return NULL;
}

/* An unencoded password with '@', ':' or '/' ends up in these. */
static bool is_clear(const PQconninfoOption *parts)
{
    const char *host = part_of(parts, "host");
    const char *port = part_of(parts, "port");

    if (port && port[strspn(port, "0123456789,")])
        return false;
    return !host || host[0] == '/' || !strpbrk(host, "@?");
}

/* host1:port1,host2:port2; one port may serve all hosts. */
static void write_hosts(struct buf *out, const char *hosts, const char *ports)
{
    while (hosts) {
        size_t host_len = strcspn(hosts, ",");
        size_t port_len = ports ? strcspn(ports, ",") : 0;

        buf_append(out, hosts, host_len);
        if (port_len)
            buf_format(out, ":%.*s", (int)port_len, ports);
        hosts = hosts[host_len] ? hosts + host_len + 1 : NULL;
        if (ports && ports[port_len])
            ports += port_len + 1;
        if (hosts)
            buf_byte(out, ',');
    }
}

void pg_shown(struct str where, char *out, size_t cap)
{
    struct buf text = BUF_INIT(URL_BYTES_MAX);
    struct str schema;
    PQconninfoOption *parts = take_apart(where, &schema);

    if (parts && is_clear(parts)) {
        const char *user = part_of(parts, "user");
        const char *host = part_of(parts, "host");

        buf_format(&text, "postgres://%s%s", user ? user : "", user ? "@" : "");
        write_hosts(&text, host ? host : part_of(parts, "hostaddr"), part_of(parts, "port"));
        buf_format(&text, "/%s", part_of(parts, "dbname") ? part_of(parts, "dbname") : "");
        if (schema.data)
            buf_format(&text, "?schema=" STR_FMT, STR_ARG(schema));
    } else {
        buf_text(&text, UNREADABLE);
    }
    PQconninfoFree(parts);
    snprintf(out, cap, STR_FMT, STR_ARG(buf_view(&text)));
    buf_deinit(&text);
}

/* Checked before libpq, whose message would quote what it does not understand. */
int pg_url_check(struct str where, struct err *err)
{
    struct str schema;
    PQconninfoOption *parts = take_apart(where, &schema);
    bool clear = parts && is_clear(parts);

    PQconninfoFree(parts);
    return clear ? 0 : err_set(err, ERR_USAGE, "the address of the database cannot be read; in "
                               "user and password write '@' as %%40, ':' as %%3A, '/' as %%2F, "
                               "'%%' as %%25, and name only parameters that libpq knows");
}

bool pg_has_password(struct str where)
{
    struct str schema;
    PQconninfoOption *parts = take_apart(where, &schema);
    bool has = parts && part_of(parts, "password");

    PQconninfoFree(parts);
    return has;
}
