/* What `perdura doctor` says about inboxes: each is connected to once, as the server does, and its
 * waiting rows are looked at and left alone. One thread. */
#include "node/inboxes/inbox_source.h"
#include "node/node.h"
#include "store/store.h"

#include <sys/eventfd.h>
#include <unistd.h>

static int try(const struct inbox_rule *rule, int stop, struct err *err)
{
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    struct inbox_source *source = inbox_source_new(rule, stop, err);
    struct inbox_size *sizes;
    uint32_t count;
    int rc;

    if (!source)
        return -(int)err->code;
    rc = source->verbs->connect(source, err);
    if (rc == 0)
        rc = source->verbs->sizes(source, &arena, &sizes, &count, err);
    if (rc == 0)
        rc = source->verbs->rest(source, err);
    source->verbs->free(source);
    return rc;
}

int node_doctor_inboxes(const struct settings *settings, struct arena *arena,
                        struct doctor_check **checks, uint32_t *count, struct err *err)
{
    int stop = eventfd(0, EFD_CLOEXEC);

    *count = settings->enqueue.inboxes_count;
    *checks = arena_alloc_array(arena, *count + 1, sizeof **checks);
    for (uint32_t i = 0; *checks && i < *count; i++) {
        const struct inbox_rule *rule = &settings->enqueue.inboxes[i];
        struct doctor_check *check = &(*checks)[i];
        struct err why = {0};
        char shown[512];

        store_shown(rule->store, shown, sizeof shown);
        *check = (struct doctor_check){.verdict = DOCTOR_OK, .name = STR("inbox")};
        if (try(rule, stop, &why) == 0) {
            check->detail = arena_format(arena, STR_FMT ": " STR_FMT " in %s can be read",
                                         STR_ARG(rule->name), STR_ARG(rule->table), shown);
            continue;
        }
        check->verdict = DOCTOR_WARNING;
        check->detail = arena_format(arena, STR_FMT ": %s", STR_ARG(rule->name), why.text);
        check->fix = STR("until then its rows wait; none is lost");
    }
    if (stop >= 0)
        close(stop);
    return *checks && !arena->failed ? 0 : err_no_memory(err);
}
