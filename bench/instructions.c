/* A fixed amount of work for bench/instructions.py to count under callgrind: enqueue, claim and
 * complete through the library, in batches, each step of all tasks in a dump of its own. Without
 * valgrind it only does the work. Usage: instructions STORE. One thread beside the library's. */
#include <perdura.h>

#include <stdio.h>
#include <stdlib.h>
#include <valgrind/callgrind.h>

#define PAYLOAD "{\"to\":\"user@example.com\",\"subject\":\"hello\",\"body\":\"some text that is " \
                "about as long as these are, or a bit\"}"
#define BATCH 100
#define BATCHES 20
#define LEASE_MS (24 * 3600 * 1000) /* no sweep falls into the count, however slow it runs */
#define WARM_UP 5 /* batches before that: statements are prepared, the first pages made */

static void check(struct pd *pd, int rc, const char *what)
{
    if (rc == 0)
        return;
    fprintf(stderr, "instructions: %s: %s\n", what, pd_error(pd));
    exit(1);
}

static void enqueue(struct pd *pd, int batches)
{
    struct pd_task_spec specs[BATCH];
    struct pd_enqueued enqueued[BATCH];

    for (int i = 0; i < BATCH; i++)
        specs[i] = (struct pd_task_spec){.size = sizeof(struct pd_task_spec),
                                         .type = "bench", .payload = PAYLOAD};
    for (int i = 0; i < batches; i++)
        check(pd, pd_enqueue_batch(pd, specs, BATCH, enqueued), "enqueue");
}

static void claim(struct pd *pd, struct pd_consumer *consumer, struct pd_claims **claims,
                  int batches)
{
    for (int i = 0; i < batches; i++) {
        check(pd, pd_claim(consumer, BATCH, 0, &claims[i]), "claim");
        check(pd, claims[i]->count == BATCH ? 0 : -1, "a claim brought too few tasks");
    }
}

static void complete(struct pd *pd, struct pd_consumer *consumer, struct pd_claims **claims,
                     int batches)
{
    static struct pd_report reports[2 * BATCH];

    for (int i = 0; i < batches; i++) {
        for (int j = 0; j < 2 * BATCH; j++) {
            const struct pd_claimed *task = claims[i]->tasks[j / 2];

            reports[j] = (struct pd_report){.size = sizeof(struct pd_report), .task_id = task->id,
                                            .lease_token = task->lease_token,
                                            .op = j % 2 ? PD_OP_COMPLETE : PD_OP_START,
                                            .json = j % 2 ? "{\"ok\":true}" : NULL};
        }
        check(pd, pd_report(consumer, reports, 2 * BATCH), "report");
        for (int j = 0; j < 2 * BATCH; j++)
            check(pd, reports[j].rc, "a report was refused");
        pd_claims_free(claims[i]);
    }
}

int main(int argc, char **argv)
{
    const struct pd_options options = {.size = sizeof(struct pd_options), .lease_ms = LEASE_MS};
    struct pd_claims *claims[BATCHES];
    struct pd_consumer *consumer;
    struct pd *pd;

    if (argc != 2) {
        fprintf(stderr, "usage: instructions STORE\n");
        return 2;
    }
    check(NULL, pd_open(argv[1], &options, &pd), "open");
    check(pd, pd_consumer_open(pd, NULL, &consumer), "consumer");
    enqueue(pd, WARM_UP);
    claim(pd, consumer, claims, WARM_UP);
    complete(pd, consumer, claims, WARM_UP);
    CALLGRIND_ZERO_STATS;
    enqueue(pd, BATCHES);
    CALLGRIND_DUMP_STATS_AT("enqueue");
    claim(pd, consumer, claims, BATCHES);
    CALLGRIND_DUMP_STATS_AT("claim");
    complete(pd, consumer, claims, BATCHES);
    CALLGRIND_DUMP_STATS_AT("complete");
    printf("%d\n", BATCH * BATCHES);
    pd_consumer_close(consumer);
    pd_close(pd);
    return 0;
}
