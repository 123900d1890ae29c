/* Conformance: open runs of jobs and what they wait for (D4, D7): found oldest first, gone with
 * their tasks, and compared with the tasks by verify. */
#include "conformance.h"

static const struct uuid nobody = {{0}};

/* A task of a job and its open run, stored in the transaction under way. */
static struct task *given_run(struct conformance *c, const struct job *job,
                              const struct schedule *schedule, int64_t created_at_us)
{
    struct task *task = given_task(c, "q", "t");
    struct job_run run;

    task->spec.origin.job_id = job->id;
    task->spec.origin.schedule_id = schedule ? schedule->id : nobody;
    insert_task(c, task);
    run = (struct job_run){.task_id = task->id,
                           .job_id = job->id,
                           .schedule_id = task->spec.origin.schedule_id,
                           .created_at_us = created_at_us};
    OK(c, CATALOG(c)->runs_insert(c->store, &run, 1, &c->err));
    return task;
}

/* The same, but it waits for other jobs in these ways. */
static struct task *given_waiting(struct conformance *c, const struct job *job,
                                  const struct job_wait *waits, uint32_t count)
{
    struct task *task = given_task(c, "q", "t");
    struct job_run run = {.task_id = task->id, .job_id = job->id, .created_at_us = T0_US};

    task->spec.origin.job_id = job->id;
    task->status = STATUS_BLOCKED;
    task->waits.open_dependencies = count;
    insert_task(c, task);
    OK(c, CATALOG(c)->runs_insert(c->store, &run, 1, &c->err));
    for (uint32_t i = 0; i < count; i++) {
        struct job_wait wait = waits[i];

        wait.task_id = task->id;
        OK(c, CATALOG(c)->waits_insert(c->store, &wait, 1, &c->err));
    }
    return task;
}

static uint32_t find_runs(struct conformance *c, const struct uuid *job_id,
                          const struct uuid *schedule_id, const struct uuid *recurring_id,
                          uint32_t limit, struct job_run **runs)
{
    uint32_t count = 0;

    OK(c, CATALOG(c)->runs_find(c->store, job_id, schedule_id, recurring_id, limit, &c->arena,
                                runs, &count, &c->err));
    return count;
}

static uint32_t find_waits(struct conformance *c, const struct job *depends_on,
                           const struct job_wait *after, uint32_t limit, struct job_wait **waits)
{
    uint32_t count = 0;

    OK(c, CATALOG(c)->waits_find(c->store, &depends_on->id, after, limit, &c->arena, waits, &count,
                                 &c->err));
    return count;
}

static void d4_open_runs_are_found_oldest_first_by_what_made_them(void **state)
{
    struct conformance *c = *state;
    struct schedule *schedule;
    struct job_run *runs, made;
    struct task *tasks[4];
    struct job *a, *b;

    store_begin(c);
    a = given_job(c, "a");
    b = given_job(c, "b");
    schedule = given_schedule(c, a, T0_US);
    tasks[0] = given_run(c, a, schedule, T0_US + 30);
    tasks[1] = given_run(c, a, NULL, T0_US + 10);
    tasks[2] = given_run(c, a, schedule, T0_US + 20);
    tasks[3] = given_run(c, b, NULL, T0_US);
    assert_int_equal(find_runs(c, &a->id, &nobody, &nobody, 10, &runs), 3);
    then_id(runs[0].task_id, tasks[1]->id);
    then_id(runs[1].task_id, tasks[2]->id);
    then_id(runs[2].task_id, tasks[0]->id);
    then_id(runs[2].job_id, a->id);
    then_id(runs[2].schedule_id, schedule->id);
    assert_true(uuid_is_nil(&runs[0].schedule_id));
    assert_int_equal(runs[2].created_at_us, T0_US + 30);
    assert_false(runs[2].waits_slot);
    assert_int_equal(find_runs(c, &a->id, &nobody, &nobody, 2, &runs), 2);
    assert_int_equal(find_runs(c, &nobody, &schedule->id, &nobody, 10, &runs), 2);
    then_id(runs[0].task_id, tasks[2]->id);
    made = runs[0];
    made.waits_slot = true;
    OK(c, CATALOG(c)->run_save(c->store, &made, &c->err));
    assert_int_equal(find_runs(c, &nobody, &schedule->id, &nobody, 1, &runs), 1);
    assert_true(runs[0].waits_slot);
    made.waits_slot = false;
    OK(c, CATALOG(c)->run_save(c->store, &made, &c->err));
    OK(c, CATALOG(c)->run_delete(c->store, &made.task_id, &c->err));
    assert_int_equal(find_runs(c, &nobody, &schedule->id, &nobody, 10, &runs), 1);
    OK(c, CATALOG(c)->runs_insert(c->store, &made, 1, &c->err)); /* it runs again */
    store_commit(c);
    assert_int_equal(find_runs(c, &b->id, &nobody, &nobody, 10, &runs), 1);
    then_id(runs[0].task_id, tasks[3]->id);
    assert_int_equal(verify_findings(c), 0);
}

static void then_counts(struct conformance *c, const struct uuid *job_id,
                        const struct uuid *schedule_id, uint32_t limit, uint32_t going,
                        uint32_t waiting)
{
    uint32_t counted[2];

    OK(c, CATALOG(c)->runs_count(c->store, job_id, schedule_id, limit, &counted[0], &counted[1],
                                 &c->err));
    assert_int_equal(counted[0], going);
    assert_int_equal(counted[1], waiting);
}

static struct task *given_in_line(struct conformance *c, const struct job *job,
                                  const struct schedule *schedule, int64_t created_at_us)
{
    struct task *task = given_run(c, job, schedule, created_at_us);
    struct job_run run = {.task_id = task->id, .waits_slot = true};

    OK(c, CATALOG(c)->run_save(c->store, &run, &c->err));
    return task;
}

static void d7_runs_that_wait_for_a_slot_are_counted_and_found_page_by_page(void **state)
{
    struct conformance *c = *state;
    struct schedule *schedule;
    struct job_run *runs;
    struct task *tasks[3];
    struct uuid *ids;
    struct job *a, *b;
    uint32_t count;

    store_begin(c);
    a = given_job(c, "a");
    b = given_job(c, "b");
    schedule = given_schedule(c, a, T0_US);
    given_run(c, a, schedule, T0_US + 50);
    given_run(c, a, NULL, T0_US + 40);
    tasks[0] = given_in_line(c, a, schedule, T0_US + 30);
    tasks[1] = given_in_line(c, a, NULL, T0_US + 10);
    tasks[2] = given_in_line(c, b, NULL, T0_US + 20);
    then_counts(c, &a->id, &nobody, 9, 2, 2);
    then_counts(c, &a->id, &nobody, 1, 1, 1);
    then_counts(c, &nobody, &schedule->id, 9, 1, 1);
    then_counts(c, &b->id, &nobody, 9, 0, 1);
    OK(c, CATALOG(c)->runs_waiting(c->store, &a->id, &nobody, NULL, 1, &c->arena, &runs, &count,
                                   &c->err));
    assert_int_equal(count, 1);
    then_id(runs[0].task_id, tasks[1]->id);
    OK(c, CATALOG(c)->runs_waiting(c->store, &a->id, &nobody, &runs[0], 9, &c->arena, &runs,
                                   &count, &c->err));
    assert_int_equal(count, 1);
    then_id(runs[0].task_id, tasks[0]->id);
    OK(c, CATALOG(c)->runs_waiting(c->store, &nobody, &schedule->id, NULL, 9, &c->arena, &runs,
                                   &count, &c->err));
    assert_int_equal(count, 1);
    OK(c, CATALOG(c)->runs_waiting_jobs(c->store, &nobody, 9, &c->arena, &ids, &count, &c->err));
    assert_int_equal(count, 2);
    then_id(ids[0], a->id);
    OK(c, CATALOG(c)->runs_waiting_jobs(c->store, &ids[0], 9, &c->arena, &ids, &count, &c->err));
    assert_int_equal(count, 1);
    then_id(ids[0], b->id);
    then_id(tasks[2]->spec.origin.job_id, b->id);
    store_commit(c);
}

static void d7_waits_that_are_over_are_told_apart(void **state)
{
    static const bool by_success[DEPENDENCY_COUNT] = {[DEPENDENCY_SUCCESS] = true};
    struct conformance *c = *state;
    struct job_wait *waits;
    struct job *a, *b, *other;
    struct task *mine;
    uint32_t count;

    store_begin(c);
    a = given_job(c, "a");
    b = given_job(c, "b");
    other = given_job(c, "other");
    mine = given_waiting(c, a, (struct job_wait[]){{nobody, other->id, DEPENDENCY_SUCCESS},
                                                   {nobody, other->id, DEPENDENCY_FAILURE}}, 2);
    given_waiting(c, b, (struct job_wait[]){{nobody, other->id, DEPENDENCY_SUCCESS}}, 1);
    OK(c, CATALOG(c)->waits_end(c->store, &other->id, by_success, &a->id, &c->err));
    assert_int_equal(find_waits(c, other, NULL, 9, &waits), 2);
    OK(c, CATALOG(c)->waits_over(c->store, 9, &c->arena, &waits, &count, &c->err));
    assert_int_equal(count, 1);
    then_id(waits[0].task_id, mine->id);
    assert_int_equal(waits[0].kind, DEPENDENCY_SUCCESS);
    OK(c, CATALOG(c)->waits_end(c->store, &other->id, by_success, &nobody, &c->err));
    assert_int_equal(find_waits(c, other, NULL, 9, &waits), 1);
    OK(c, CATALOG(c)->waits_end_of_job(c->store, &a->id, &c->err));
    assert_int_equal(find_waits(c, other, NULL, 9, &waits), 0);
    OK(c, CATALOG(c)->waits_over(c->store, 2, &c->arena, &waits, &count, &c->err));
    assert_int_equal(count, 2);
    store_commit(c);
    assert_int_equal(verify_findings(c), 0); /* the tasks still count them */
}

static void d6_open_runs_of_a_pattern_are_found(void **state)
{
    struct conformance *c = *state;
    struct recurring *recurring;
    struct job_run runs[3], *found;
    struct job *job;

    store_begin(c);
    job = given_job(c, "a");
    recurring = given_recurring(c, job, T0_US);
    for (int i = 0; i < 3; i++) {
        struct task *task = given_task(c, "q", "t");

        task->spec.origin.job_id = job->id;
        task->spec.origin.recurring_job_id = recurring->id;
        insert_task(c, task);
        runs[i] = (struct job_run){.task_id = task->id, .job_id = job->id,
                                   .recurring_job_id = recurring->id,
                                   .created_at_us = T0_US + i};
    }
    OK(c, CATALOG(c)->runs_insert(c->store, runs, 3, &c->err));
    store_commit(c);
    assert_int_equal(find_runs(c, &nobody, &nobody, &recurring->id, 10, &found), 3);
    for (int i = 0; i < 3; i++) {
        then_id(found[i].task_id, runs[i].task_id);
        then_id(found[i].recurring_job_id, recurring->id);
    }
    assert_int_equal(verify_findings(c), 0);
}

static void d7_who_waits_for_a_job_is_found_oldest_first_and_page_by_page(void **state)
{
    struct conformance *c = *state;
    struct job *a, *b, *d;
    struct task *tasks[3];
    struct job_wait *waits, after;

    store_begin(c);
    a = given_job(c, "a");
    b = given_job(c, "b");
    d = given_job(c, "d");
    for (int i = 0; i < 3; i++)
        tasks[i] = given_waiting(c, a, (const struct job_wait[]){
            {.depends_on_job_id = b->id, .kind = DEPENDENCY_SUCCESS},
            {.depends_on_job_id = b->id, .kind = DEPENDENCY_COMPLETION},
            {.depends_on_job_id = d->id, .kind = DEPENDENCY_FAILURE}}, 3);
    store_commit(c);
    assert_int_equal(verify_findings(c), 0);
    assert_int_equal(find_waits(c, b, NULL, 10, &waits), 6);
    for (int i = 0; i < 6; i++) {
        then_id(waits[i].task_id, tasks[i / 2]->id);
        then_id(waits[i].depends_on_job_id, b->id);
        assert_int_equal(waits[i].kind, i % 2 ? DEPENDENCY_SUCCESS : DEPENDENCY_COMPLETION);
    }
    after = waits[2]; /* in the middle of a task */
    assert_int_equal(find_waits(c, b, &after, 2, &waits), 2);
    then_id(waits[0].task_id, tasks[1]->id);
    assert_int_equal(waits[0].kind, DEPENDENCY_SUCCESS);
    then_id(waits[1].task_id, tasks[2]->id);
    assert_int_equal(find_waits(c, d, NULL, 10, &waits), 3);
    assert_int_equal(find_waits(c, a, NULL, 10, &waits), 0);
}

static void d7_a_wait_ends_alone_or_with_all_of_its_task(void **state)
{
    struct conformance *c = *state;
    struct job_wait *waits, some[3];
    struct task *first, *second;
    uint32_t removed = 9;
    struct job *a, *b;

    store_begin(c);
    a = given_job(c, "a");
    b = given_job(c, "b");
    some[0] = (struct job_wait){.depends_on_job_id = b->id, .kind = DEPENDENCY_SUCCESS};
    some[1] = (struct job_wait){.depends_on_job_id = b->id, .kind = DEPENDENCY_COMPLETION};
    first = given_waiting(c, a, some, 2);
    second = given_waiting(c, a, some, 2);
    some[0].task_id = first->id;
    some[1].task_id = second->id;
    some[2] = (struct job_wait){first->id, b->id, DEPENDENCY_FAILURE}; /* there is none */
    OK(c, CATALOG(c)->waits_delete(c->store, some, 3, &removed, &c->err));
    assert_int_equal(removed, 2);
    assert_int_equal(find_waits(c, b, NULL, 10, &waits), 2);
    then_id(waits[0].task_id, first->id);
    assert_int_equal(waits[0].kind, DEPENDENCY_COMPLETION);
    then_id(waits[1].task_id, second->id);
    assert_int_equal(waits[1].kind, DEPENDENCY_SUCCESS);
    OK(c, CATALOG(c)->waits_delete(c->store, waits, 1, NULL, &c->err));
    OK(c, CATALOG(c)->waits_drop(c->store, &second->id, &removed, &c->err));
    assert_int_equal(removed, 1);
    OK(c, CATALOG(c)->waits_drop(c->store, &second->id, NULL, &c->err));
    assert_int_equal(find_waits(c, b, NULL, 10, &waits), 0);
    store_commit(c);
}

static void d4_a_deleted_task_leaves_no_run_and_no_wait_behind(void **state)
{
    struct conformance *c = *state;
    struct job_wait *waits;
    struct job_run *runs;
    struct task *tasks[2];
    struct job *a, *b;

    store_begin(c);
    a = given_job(c, "a");
    b = given_job(c, "b");
    tasks[0] = given_run(c, a, NULL, T0_US);
    tasks[1] = given_waiting(c, a, (const struct job_wait[]){
        {.depends_on_job_id = b->id, .kind = DEPENDENCY_SUCCESS}}, 1);
    store_commit(c);
    store_begin(c);
    for (int i = 0; i < 2; i++)
        tasks[i] = load_task(c, &tasks[i]->id, LOAD_ALL);
    OK(c, c->verbs->tasks_delete(c->store, tasks, 2, &c->err));
    store_commit(c);
    assert_int_equal(find_runs(c, &a->id, &nobody, &nobody, 10, &runs), 0);
    assert_int_equal(find_waits(c, b, NULL, 10, &waits), 0);
    assert_int_equal(verify_findings(c), 0);
}

static void d4_verify_finds_runs_that_are_not_those_of_open_tasks(void **state)
{
    struct conformance *c = *state;
    struct job_run strange = {.task_id = {{7}}, .job_id = {{8}}, .created_at_us = T0_US};
    struct task *missing, *ended;
    struct job *job;

    store_begin(c);
    job = given_job(c, "a");
    missing = given_run(c, job, NULL, T0_US);
    store_commit(c);
    assert_int_equal(verify_findings(c), 0);
    store_begin(c);
    OK(c, CATALOG(c)->run_delete(c->store, &missing->id, &c->err));
    store_commit(c);
    assert_int_equal(verify_findings(c), 1);
    store_begin(c);
    ended = given_task(c, "q", "t");
    ended->spec.origin.job_id = job->id;
    ended->status = STATUS_COMPLETED;
    ended->completed_at_us = T0_US;
    insert_task(c, ended);
    strange.task_id = ended->id;
    strange.job_id = job->id;
    OK(c, CATALOG(c)->runs_insert(c->store, &strange, 1, &c->err));
    store_commit(c);
    assert_int_equal(verify_findings(c), 2);
    store_begin(c);
    strange.task_id = (struct uuid){{7}};
    OK(c, CATALOG(c)->runs_insert(c->store, &strange, 1, &c->err));
    store_commit(c);
    assert_int_equal(verify_findings(c), 3);
}

static void d7_verify_finds_waits_of_tasks_that_do_not_wait(void **state)
{
    struct conformance *c = *state;
    struct job_wait wait;
    struct task *task;
    struct job *a, *b;

    store_begin(c);
    a = given_job(c, "a");
    b = given_job(c, "b");
    task = given_run(c, a, NULL, T0_US);
    wait = (struct job_wait){task->id, b->id, DEPENDENCY_SUCCESS};
    OK(c, CATALOG(c)->waits_insert(c->store, &wait, 1, &c->err));
    store_commit(c);
    assert_int_equal(verify_findings(c), 1);
    store_begin(c);
    OK(c, CATALOG(c)->waits_drop(c->store, &task->id, NULL, &c->err));
    wait.task_id = (struct uuid){{7}};
    OK(c, CATALOG(c)->waits_insert(c->store, &wait, 1, &c->err));
    store_commit(c);
    assert_int_equal(verify_findings(c), 1);
}

/* D7: one of its open dependencies is a wait, another its turn; what is left are parents. */
static void d7_verify_counts_waits_among_open_dependencies(void **state)
{
    struct conformance *c = *state;
    struct job_run run;
    struct task *task;
    struct job *a, *b;

    store_begin(c);
    a = given_job(c, "a");
    b = given_job(c, "b");
    task = given_waiting(c, a, (const struct job_wait[]){
        {.depends_on_job_id = b->id, .kind = DEPENDENCY_SUCCESS}}, 1);
    task->waits.open_dependencies = 2;
    save_task(c, task);
    run = (struct job_run){.task_id = task->id, .job_id = a->id, .waits_slot = true};
    OK(c, CATALOG(c)->run_save(c->store, &run, &c->err));
    store_commit(c);
    assert_int_equal(verify_findings(c), 0);
    store_begin(c);
    run.waits_slot = false;
    OK(c, CATALOG(c)->run_save(c->store, &run, &c->err));
    store_commit(c);
    assert_int_equal(verify_findings(c), 1);
}

const struct conformance_test conformance_runs_tests[] = {
    CONFORMANCE_TEST(d4_open_runs_are_found_oldest_first_by_what_made_them),
    CONFORMANCE_TEST(d7_runs_that_wait_for_a_slot_are_counted_and_found_page_by_page),
    CONFORMANCE_TEST(d7_waits_that_are_over_are_told_apart),
    CONFORMANCE_TEST(d6_open_runs_of_a_pattern_are_found),
    CONFORMANCE_TEST(d7_who_waits_for_a_job_is_found_oldest_first_and_page_by_page),
    CONFORMANCE_TEST(d7_a_wait_ends_alone_or_with_all_of_its_task),
    CONFORMANCE_TEST(d4_a_deleted_task_leaves_no_run_and_no_wait_behind),
    CONFORMANCE_TEST(d4_verify_finds_runs_that_are_not_those_of_open_tasks),
    CONFORMANCE_TEST(d7_verify_finds_waits_of_tasks_that_do_not_wait),
    CONFORMANCE_TEST(d7_verify_counts_waits_among_open_dependencies),
    CONFORMANCE_END,
};
