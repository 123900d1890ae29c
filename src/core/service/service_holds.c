#include "core/service/service_holds.h"

#include "core/service/service_outcome.h"

#include <inttypes.h>
#include <stdio.h>

#define MS_US INT64_C(1000)
#define SAME_US (250 * MS_US) /* what a message needs on its way makes no new end */
#define LINGER_US (30000 * MS_US) /* a service that is down was tried, and failed again */

static uint32_t count_of(const struct service_holds *holds, const char *name)
{
    size_t len = (size_t)(strchrnul(name, '/') - name);
    uint32_t count = 0;

    for (uint32_t i = 0; i < holds->count; i++)
        count += strncmp(holds->list[i].name, name, len) == 0 && holds->list[i].name[len] == '/';
    return count;
}

/* Of the namespace that has the most, if that has more than the one that wants a place. */
static struct service_held *place_of_many(struct service_holds *holds, const char *name)
{
    uint32_t most = count_of(holds, name) + 1;
    struct service_held *found = NULL;

    for (uint32_t i = 0; i < holds->count; i++) {
        uint32_t count = count_of(holds, holds->list[i].name);

        if (count > most) {
            most = count;
            found = &holds->list[i];
        }
    }
    return found;
}

static struct service_held *place(struct service_holds *holds, const char *name, int64_t now_us)
{
    struct service_held *over = NULL;

    for (uint32_t i = 0; i < holds->count; i++) {
        if (strcmp(holds->list[i].name, name) == 0)
            return &holds->list[i];
        if (holds->list[i].until_us <= now_us)
            over = &holds->list[i];
    }
    if (!over && holds->count < SERVICE_HOLDS_MAX)
        over = &holds->list[holds->count++];
    if (!over)
        over = place_of_many(holds, name);
    if (over) {
        *over = (struct service_held){.until_us = 0};
        memcpy(over->name, name, strlen(name));
    }
    return over;
}

static bool put(struct service_holds *holds, const char *name, int64_t until_us, bool is_down,
                int64_t now_us)
{
    struct service_held *held = until_us > now_us ? place(holds, name, now_us) : NULL;

    if (!held || until_us <= held->until_us + SAME_US)
        return false;
    if (held->until_us < now_us - LINGER_US)
        held->since_us = now_us;
    held->until_us = until_us;
    held->is_down = is_down;
    return true;
}

bool service_holds_put(struct service_holds *holds, struct str namespace_name,
                       const struct service_hold *hold, int64_t now_us)
{
    int64_t wait_ms = hold->wait_ms < SERVICE_WAIT_MS_MAX ? hold->wait_ms : SERVICE_WAIT_MS_MAX;
    char name[sizeof holds->list[0].name];

    if (namespace_name.len + hold->service.len + 2 > sizeof name || wait_ms <= 0)
        return false;
    snprintf(name, sizeof name, STR_FMT "/" STR_FMT, STR_ARG(namespace_name),
             STR_ARG(hold->service));
    return put(holds, name, now_us + wait_ms * MS_US, hold->is_down, now_us);
}

bool service_holds_next(const struct service_holds *holds, struct str namespace_name,
                        int64_t now_us, uint32_t *at, struct service_hold *hold)
{
    while (*at < holds->count) {
        const struct service_held *held = &holds->list[(*at)++];
        struct str name = str_of(held->name);

        if (held->until_us <= now_us || !str_starts(name, namespace_name) ||
            name.data[namespace_name.len] != '/')
            continue;
        *hold = (struct service_hold){
            str_span(name.data + namespace_name.len + 1, name.len - namespace_name.len - 1),
            (held->until_us - now_us + MS_US - 1) / MS_US, held->is_down, held->since_us};
        return true;
    }
    return false;
}

void service_holds_write(const struct service_holds *holds, int64_t now_us, struct buf *out)
{
    for (uint32_t i = 0; i < holds->count; i++)
        if (holds->list[i].until_us > now_us)
            buf_format(out, "%s %lld %d\n", holds->list[i].name,
                       (long long)holds->list[i].until_us, holds->list[i].is_down);
}

static void read_line(struct service_holds *holds, struct str line, int64_t now_us)
{
    char text[sizeof holds->list[0].name + 64], name[sizeof text];
    int64_t until_us;
    int is_down;

    if (line.len >= sizeof text)
        return;
    memcpy(text, line.data, line.len);
    text[line.len] = '\0';
    if (sscanf(text, "%s %" SCNd64 " %d", name, &until_us, &is_down) != 3 ||
        strlen(name) >= sizeof holds->list[0].name ||
        until_us > now_us + 2 * SERVICE_WAIT_MS_MAX * MS_US)
        return;
    put(holds, name, until_us, is_down != 0, now_us);
}

void service_holds_read(struct service_holds *holds, struct str text, int64_t now_us)
{
    while (text.len) {
        const char *end = memchr(text.data, '\n', text.len);
        size_t len = end ? (size_t)(end - text.data) : text.len;

        read_line(holds, str_span(text.data, len), now_us);
        text = str_span(text.data + len + (end != NULL), text.len - len - (end != NULL));
    }
}
