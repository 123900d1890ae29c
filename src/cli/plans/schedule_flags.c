/* From flags to a schedule. See schedule_flags.h. One thread. */
#include "cli/plans/schedule_flags.h"

#include "base/json.h"
#include "cli/plans/expression.h"
#include "cli/plans/local_time.h"

const struct flag schedule_flags[] = {SCHEDULE_FLAGS, {0}};

static const struct {
    const char *flag;
    const char *type;
    const char *field; /* NULL = none */
} times[] = {{"cron", "cron", "cron_expression"},
             {"every", "interval", "interval_seconds"},
             {"at", "once", "scheduled_at"},
             {"now", "immediate", NULL}};

#define TIMES (sizeof times / sizeof *times)

bool schedule_flags_time(const struct call *call)
{
    for (size_t i = 0; i < TIMES; i++)
        if (call_given(call, times[i].flag))
            return true;
    return false;
}

static int find_type(struct call *call, bool is_new, const char **type)
{
    uint32_t given = 0;

    *type = NULL;
    for (size_t i = 0; i < TIMES; i++)
        if (call_given(call, times[i].flag)) {
            *type = times[i].type;
            given++;
        }
    if (given > 1 || (is_new && given == 0))
        return err_set(&call->err, ERR_USAGE, "give one of --cron EXPR, --every D, --at TIME and "
                       "--now");
    return 0;
}

/* A schedule that changes its type forgets what the old one said. */
static void write_type(struct call *call, const char *type, bool is_new, struct buf *body)
{
    json_write_member_string(body, "schedule_type", str_of(type));
    for (size_t i = 0; i < TIMES && !is_new; i++)
        if (times[i].field && !call_given(call, times[i].flag))
            buf_format(body, ",\"%s\":null", times[i].field);
}

int schedule_flags_write(struct call *call, bool is_new, struct buf *body)
{
    struct cron cron;
    const char *type;
    int rc = find_type(call, is_new, &type);

    if (rc == 0 && str_starts(call_given_text(call, "cron"), STR("@every")))
        return err_set(&call->err, ERR_USAGE, "--cron takes no @every; use --every 5m");
    if (rc == 0 && call_given(call, "cron"))
        rc = expression_check_cron(call, call_given_text(call, "cron"), &cron);
    if (rc < 0)
        return rc;
    if (str_is(call_given_text(call, "tz"), "local"))
        call_replace(call, "tz", local_zone_name(&call->arena));
    if (type)
        write_type(call, type, is_new, body);
    return call_write_fields_of(call, schedule_flags, body);
}
