/* The flags that say when something fires, shared by the commands that make, change and try out
 * schedules; and how they become a request. One thread. */
#ifndef CLI_PLANS_SCHEDULE_FLAGS_H
#define CLI_PLANS_SCHEDULE_FLAGS_H

#include "cli/frame/command.h"

#define SCHEDULE_FLAGS                                                                           \
    {.name = "cron", .type = FLAG_TEXT, .value = "EXPR", .field = "cron_expression",             \
     .help = "fire by this cron expression: '0 9 * * 1-5', @daily"},                             \
    {.name = "every", .type = FLAG_SECONDS, .value = "D", .field = "interval_seconds",           \
     .help = "fire at this interval: 30s, 5m, 2h"},                                   \
    {.name = "at", .type = FLAG_TIME, .value = "TIME", .field = "scheduled_at",                  \
     .help = "fire once, at this time: RFC 3339, a date or local time of --tz, or +5m"},         \
    {.name = "now", .type = FLAG_BOOL, .help = "fire once, right away"},                         \
    {.name = "tz", .type = FLAG_TEXT, .value = "ZONE", .field = "timezone",                      \
     .help = "IANA name of the zone, such as Europe/Paris, or local for this machine's; the "    \
             "server's default is UTC"},                                                         \
    {.name = "starts-at", .type = FLAG_TIME, .value = "TIME", .field = "starts_at",              \
     .help = "nothing before this time"},                                                        \
    {.name = "ends-at", .type = FLAG_TIME, .value = "TIME", .field = "ends_at",                  \
     .help = "nothing after this time"},                                                         \
    {.name = "misfire", .type = FLAG_WORD, .value = "POLICY", .field = "misfire",                \
     .choices = "skip|fire_once|fire_all",                                                       \
     .help = "what to do with instants missed by more than the grace (fire_once)"},              \
    {.name = "misfire-grace", .type = FLAG_DURATION, .value = "D", .field = "misfire_grace_ms",  \
     .help = "fire all instants missed by less than this (60s)"},                                \
    {.name = "misfire-cap", .type = FLAG_INT, .value = "N", .field = "misfire_cap", .min = 1,    \
     .max = 1000000, .help = "with fire_all: how many missed instants fire at most (100)"},      \
    {.name = "overlap", .type = FLAG_WORD, .value = "POLICY", .field = "overlap",                \
     .choices = "allow|skip|queue|replace",                                                      \
     .help = "what to do when an earlier run has not ended (allow)"},                            \
    {.name = "dst", .type = FLAG_WORD, .value = "POLICY", .field = "dst",                        \
     .choices = "standard|skip|both", .help = "what to do when clocks change for daylight "       \
                                              "saving (standard)"},     \
    {.name = "jitter", .type = FLAG_DURATION, .value = "D", .field = "jitter_ms",                \
     .help = "start up to this much later than planned, so that not all start at once"}

extern const struct flag schedule_flags[];

/* Were any of the flags given that name a time: cron, every, at, now? */
bool schedule_flags_time(const struct call *call);

/* Checks them (a cron expression with a caret), and appends them to an open object. A new schedule
 * must name one time, a change at most one. */
int schedule_flags_write(struct call *call, bool is_new, struct buf *body);

#endif
