/* The conformance suite: what every store must do behind store/store.h, whatever it is made of. It
 * is written against that header alone; a store joins by one small program that says how an empty
 * place for it is made, removed and harmed, and calls conformance_run. Each test gets a store of
 * its own. Not for the inside of a store: such tests are beside the store's name in tests/unit. */
#ifndef TESTS_STORE_CONFORMANCE_H
#define TESTS_STORE_CONFORMANCE_H

#include "store/catalog_store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define WHERE_BYTES 256
#define T0_US INT64_C(1800000000000000) /* when the tests take place */
#define SECOND_US INT64_C(1000000)

/* How one kind of store is made for a test. */
struct conformance_kind {
    const char *name;
    void (*make)(char *where, size_t cap); /* a place without a task, as store_open takes it */
    void (*drop)(const char *where);       /* removes it and all that was made beside it */
    void (*harm)(const char *where);       /* damages a closed store that has tasks */
    bool backup_is_store;                  /* a backup is itself a place that store_open takes */
    bool sealed; /* under the layer that encrypts (store/sealed), and every task is encrypted */
};

struct conformance {
    const struct conformance_kind *kind;
    char where[WHERE_BYTES];
    struct store *store;
    const struct store_verbs *verbs;
    struct store_reader *reader;
    struct keyring *keyring; /* of a sealed one */
    struct uuid7 ids;
    struct arena arena; /* lives as long as the test */
    struct err err;
};

struct conformance_test {
    const char *name;
    void (*run)(void **state);
};
#define CONFORMANCE_TEST(function) {#function, function}
#define CONFORMANCE_END {NULL, NULL}

/* One table per file of the suite. */
extern const struct conformance_test conformance_tasks_tests[];
extern const struct conformance_test conformance_uniques_tests[];
extern const struct conformance_test conformance_ready_tests[];
extern const struct conformance_test conformance_find_tests[];
extern const struct conformance_test conformance_history_tests[];
extern const struct conformance_test conformance_retention_tests[];
extern const struct conformance_test conformance_registry_tests[];
extern const struct conformance_test conformance_tokens_tests[];
extern const struct conformance_test conformance_read_tests[];
extern const struct conformance_test conformance_whole_tests[];
extern const struct conformance_test conformance_model_tests[];
extern const struct conformance_test conformance_catalog_tests[];
extern const struct conformance_test conformance_plans_tests[];
extern const struct conformance_test conformance_runs_tests[];
extern const struct conformance_test conformance_executions_tests[];
extern const struct conformance_test conformance_rivals_tests[];
extern const struct conformance_test conformance_logs_tests[];
extern const struct conformance_test conformance_measures_tests[];
extern const struct conformance_test conformance_audit_tests[];

/* Runs all of them on a kind of store; the number of failed tests. */
int conformance_run(const struct conformance_kind *kind);

/* For the tests. */
void conformance_ok(int rc, const struct err *err, const char *what, const char *file, int line);
#define OK(c, call) conformance_ok((call), &(c)->err, #call, __FILE__, __LINE__)

void store_begin(struct conformance *c);
void store_commit(struct conformance *c);
void store_rollback(struct conformance *c);
void store_close(struct conformance *c);
void store_open_again(struct conformance *c);
/* A keyring with one key-encryption key of this id, whose bytes are all the same. */
struct keyring *given_keyring(const char *id, uint8_t byte);
void store_reopen(struct conformance *c);

/* A pending task with a key, an id and defaults, not stored yet. */
struct task *given_task(struct conformance *c, const char *queue, const char *type);
/* The same, with an order key, inserted in the transaction under way. */
struct task *given_ready(struct conformance *c, const char *queue, const char *type,
                         int64_t order_key);
void insert_task(struct conformance *c, struct task *task);
void save_task(struct conformance *c, struct task *task);
struct task *load_task(struct conformance *c, const struct uuid *id, unsigned parts);
struct task *read_task(struct conformance *c, const struct uuid *id);
/* Held by a worker under a lease, as a claim leaves it. */
void claim_task(struct task *task, const char *worker_id);
/* An execution of the task that began at a time, not stored yet. */
struct execution given_execution(struct conformance *c, const struct task *task,
                                 int64_t created_at_us);
int64_t count_of(struct conformance *c, const char *queue, const char *type, enum status status);
int64_t verify_findings(struct conformance *c);
/* Takes from queues (and types, NULL = all), both NULL-terminated; admit NULL takes everything. */
typedef enum admit admit_function(void *ctx, struct str queue, struct str type,
                                  struct str limit_key, const struct uuid *category_id);
uint32_t take_ready(struct conformance *c, const char *const *queues, const char *const *types,
                    uint32_t max, admit_function *admit, void *ctx, struct task **tasks);
uint32_t take_from(struct conformance *c, const char *queue, uint32_t max, struct task **tasks);
int64_t ready_in(struct conformance *c, const char *queue);
struct str text_of(struct conformance *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* What people plan with (conformance_catalog.c). Each is put in a transaction that is under way. */
#define CATALOG(c) ((c)->verbs->catalog)
struct category *given_category(struct conformance *c, const char *name);
struct job *given_job(struct conformance *c, const char *name);
struct schedule *given_schedule(struct conformance *c, const struct job *job, int64_t next_us);
struct recurring *given_recurring(struct conformance *c, const struct job *job, int64_t next_us);
struct job_dependency *given_dependency(struct conformance *c, const struct job *job,
                                        const struct job *depends_on, enum dependency kind);
struct job *load_job(struct conformance *c, const struct uuid *id);
struct str member_of(struct str json, const char *name); /* jsonb comes back in its own form */

#define then_str(a, b) assert_true(str_same((a), (b)))
#define then_id(a, b) assert_memory_equal((a).bytes, (b).bytes, 16)
bool str_same(struct str a, struct str b); /* absent is not empty */

#endif
