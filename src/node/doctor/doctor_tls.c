/* What `perdura doctor` says about the files of TLS. Who can read the key is checked
 * together with the other secrets. One thread. */
#include "node/node.h"

#include "base/clock.h"
#include "net/tls.h"
#include "server/server.h"

static struct doctor_check judge(const struct tls_facts *facts, int64_t now_s, struct arena *arena)
{
    int64_t days = (facts->until_s - now_s) / 86400;
    struct doctor_check check = {.verdict = DOCTOR_OK, .name = STR("certificate")};

    if (facts->from_s > now_s) {
        check.verdict = DOCTOR_FAILURE;
        check.detail = STR("it is not valid yet, so that clients refuse it");
        check.fix = STR("correct this machine's clock, or use a certificate that is valid now");
    } else if (facts->until_s <= now_s) {
        check.verdict = DOCTOR_FAILURE;
        check.detail = STR("it has expired, so that clients refuse it");
        check.fix = STR("replace the files of tls.cert and tls.key; no restart is needed");
    } else if (facts->until_s - now_s < TLS_EXPIRES_SOON_S) {
        check.verdict = DOCTOR_WARNING;
        check.detail = arena_format(arena, "it expires in %lld days", (long long)days);
        check.fix = STR("replace the files of tls.cert and tls.key; no restart is needed");
    } else {
        check.detail = arena_format(arena, "valid for %lld days", (long long)days);
    }
    return check;
}

uint32_t node_doctor_tls(const struct settings *settings, struct arena *arena,
                         struct doctor_check checks[NODE_TLS_CHECKS_MAX])
{
    struct tls_config config = server_tls_config(settings);
    struct tls_facts facts;
    struct err err = {0};

    if (str_empty(config.cert) || str_empty(config.key))
        return 0; /* a start says what is missing */
    if (tls_check(&config, &facts, &err) < 0) {
        checks[0] = (struct doctor_check){
            .verdict = DOCTOR_FAILURE, .name = STR("certificate"),
            .detail = arena_str(arena, str_of(err.text)),
            .fix = STR("correct the setting, or the file it names")};
        return 1;
    }
    checks[0] = judge(&facts, clock_wall_us() / CLOCK_SECOND_US, arena);
    if (!facts.ca_count)
        return 1;
    checks[1] = (struct doctor_check){
        .verdict = DOCTOR_OK, .name = STR("client certificates"),
        .detail = arena_format(arena, "required; %u CAs may sign them", facts.ca_count)};
    return 2;
}
