/* What the doctor says of API tokens: how many there are, which end soon, and which no client
 * uses. Pure; one thread. */
#include "node/doctor/doctor_tokens.h"

#include "base/clock.h"
#include "store/token_store.h"

#define DAY_US (INT64_C(86400) * CLOCK_SECOND_US)
#define SOON_US (7 * DAY_US)
#define UNUSED_US (90 * DAY_US)

static bool ends_soon(const struct token_row *token, int64_t now_us)
{
    return token->expires_at_us && token->expires_at_us < now_us + SOON_US;
}

static bool is_full(const struct token_row *token, int64_t now_us)
{
    (void)now_us;
    return token->max_tasks && token->open_tasks >= token->max_tasks;
}

static bool is_unused(const struct token_row *token, int64_t now_us)
{
    int64_t last_us = token->last_used_at_us ? token->last_used_at_us : token->created_at_us;

    return last_us < now_us - UNUSED_US;
}

typedef bool token_test(const struct token_row *token, int64_t now_us);

/* "2 tokens …: name (id), name (id)"; absent where there is none. */
static struct str list(const struct token_row *tokens, uint32_t count, int64_t now_us,
                       token_test *fits, const char *what, struct arena *arena)
{
    BUF_AUTO struct buf names = BUF_INIT(64 * 1024);
    uint32_t found = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (token_status(&tokens[i], now_us) != TOKEN_LIVE || !fits(&tokens[i], now_us))
            continue;
        if (found++ < 10)
            buf_format(&names, "%s" STR_FMT " (" STR_FMT ")", found > 1 ? ", " : "",
                       STR_ARG(tokens[i].name), STR_ARG(tokens[i].id));
    }
    if (found > 10)
        buf_format(&names, " and %u more", found - 10);
    return found ? arena_format(arena, "%u %s: " STR_FMT, found, what, STR_ARG(buf_view(&names)))
                 : STR_NONE;
}

uint32_t doctor_tokens(const struct token_row *tokens, uint32_t count, int64_t now_us,
                       struct arena *arena, struct doctor_check checks[DOCTOR_TOKENS_MAX])
{
    uint32_t live = 0, revoked = 0, n = 0;
    struct str found;

    for (uint32_t i = 0; i < count; i++) {
        live += token_status(&tokens[i], now_us) == TOKEN_LIVE;
        revoked += tokens[i].revoked_at_us != 0;
    }
    checks[n++] = (struct doctor_check){
        .verdict = DOCTOR_OK, .name = STR("tokens"),
        .detail = arena_format(arena, "%u valid, %u expired, %u revoked", live,
                               count - live - revoked, revoked),
        .protects = count > revoked};
    found = list(tokens, count, now_us, ends_soon, "expire within 7 days", arena);
    if (found.data)
        checks[n++] = (struct doctor_check){
            .verdict = DOCTOR_WARNING, .name = STR("tokens"), .detail = found,
            .fix = STR("make new ones ('perdura token create') before clients are refused")};
    found = list(tokens, count, now_us, is_full, "have as many tasks as they may", arena);
    if (found.data)
        checks[n++] = (struct doctor_check){
            .verdict = DOCTOR_WARNING, .name = STR("tokens"), .detail = found,
            .fix = STR("see why their tasks do not end ('perdura tasks'), or make tokens with a "
                       "higher --max-tasks")};
    found = list(tokens, count, now_us, is_unused, "were not used for 90 days", arena);
    if (found.data)
        checks[n++] = (struct doctor_check){
            .verdict = DOCTOR_WARNING, .name = STR("tokens"), .detail = found,
            .fix = STR("revoke those that are not needed: 'perdura token revoke ID'")};
    return n;
}
