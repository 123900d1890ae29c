/* Task objects of requests (interfaces, 'Objects'; C1): every member, its bounds and the field that
 * an error names; defaults of types, priority rules (C5) and the input hash (A3). */
#include "core/spec/spec.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "base/json.h"
#include "core/bounds.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))
#define ID_A "\"01890a5d-ac96-774b-bcce-b302099a8057\""
#define ID_B "\"01890a5d-ac96-774b-bcce-b302099a8058\""

static int parse_with(const char *text, const struct settings *settings, struct arena *arena,
                      struct task_input *input, struct err *err)
{
    struct str checked;

    if (json_check(str_of(text), &checked, err) < 0)
        fail_msg("%s: %s", text, err->text);
    return spec_parse(checked, settings, arena, input, err);
}

static struct task_input parsed(const char *text, const struct settings *settings,
                                struct arena *arena)
{
    struct task_input input;
    struct err err = {0};

    if (parse_with(text, settings, arena, &input, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return input;
}

static void assert_str(struct str got, const char *want)
{
    if (!str_is(got, want) || (got.data == NULL) != (want == NULL))
        fail_msg("\"%.*s\", not \"%s\"", (int)got.len, got.data ? got.data : "", want);
}

static void type_alone_gives_the_defaults(void **state)
{
    struct arena arena = ARENA_INIT(1 << 20);
    struct task_input input = parsed("{\"type\":\"email\"}", NULL, &arena);

    (void)state;
    assert_str(input.spec.type, "email");
    assert_str(input.spec.queue, "default");
    assert_str(input.spec.namespace_name, "default");
    assert_null(input.spec.payload.data);
    assert_null(input.spec.name.data);
    assert_null(input.about.metadata.data);
    assert_int_equal(input.priority, 0);
    assert_false(input.has_priority);
    assert_int_equal(input.spec.retry.policy, RETRY_POLYNOMIAL);
    assert_int_equal(input.spec.retry.max_retries, 3);
    assert_int_equal(input.spec.retry.delay_ms, 1000);
    assert_int_equal(input.spec.retry.max_delay_ms, 3600000);
    assert_int_equal(input.spec.timeout_ms, 300000);
    assert_int_equal(input.spec.max_crashes, 3);
    assert_int_equal(input.spec.max_continuations, 10000);
    assert_true(input.spec.auto_recovery);
    assert_int_equal(input.spec.unique_until, UNIQUE_FOREVER);
    assert_int_equal(input.spec.on_unsatisfied, UNSATISFIED_CANCEL);
    assert_null(input.spec.input_hash.data);
    assert_int_equal(input.depends_on_count, 0);
    arena_deinit(&arena);
}

static void every_member_reaches_its_place(void **state)
{
    struct arena arena = ARENA_INIT(1 << 20);
    struct task_input input = parsed(
        "{\"type\":\"email:send\",\"payload\":{\"n\" : 0.10},\"data\":[1.0],\"queue\":\"mail\","
        "\"name\":\"Gr\\u00fc\xC3\x9F\",\"priority\":-7,\"delay_ms\":5000,\"max_retries\":0,"
        "\"max_crashes\":1,\"max_continuations\":2,\"retry_policy\":\"fixed\","
        "\"retry_delay_ms\":10,\"max_retry_delay_ms\":20,\"timeout_ms\":30,"
        "\"idempotency_key\":\"k\",\"unique_until\":\"ended\",\"metadata\":{\"m\": 1},"
        "\"tags\":[ \"a\" , \"\\u0062\",\"a\"],\"user_id\":\"u\",\"external_id\":\"e\","
        "\"context_key\":\"c\",\"correlation_id\":\"r\",\"limit_key\":\"l\",\"category\":\"g\","
        "\"workflow_id\":\"w\",\"ref\":\"me\",\"on_unsatisfied\":\"run\","
        "\"recovery_priority\":4,\"auto_recovery\":false,\"stall_after_ms\":60,"
        "\"callback_url\":\"http://127.0.0.1:9/x?y=1\",\"depends_on\":[" ID_A "],"
        "\"hash_input\":true,\"hash_fields\":[\"/n\"]}",
        NULL, &arena);

    (void)state;
    assert_str(input.spec.type, "email:send");
    assert_str(input.spec.payload, "{\"n\" : 0.10}");
    assert_str(input.data, "[1.0]");
    assert_str(input.spec.queue, "mail");
    assert_str(input.spec.name, "Gr\xC3\xBC\xC3\x9F");
    assert_true(input.has_priority && input.priority == -7);
    assert_int_equal(input.delay_ms, 5000);
    assert_true(input.has_max_retries && input.spec.retry.max_retries == 0);
    assert_int_equal(input.spec.max_crashes, 1);
    assert_int_equal(input.spec.max_continuations, 2);
    assert_true(input.has_retry_policy && input.spec.retry.policy == RETRY_FIXED);
    assert_true(input.has_retry_delay && input.spec.retry.delay_ms == 10);
    assert_true(input.has_max_retry_delay && input.spec.retry.max_delay_ms == 20);
    assert_true(input.has_timeout && input.spec.timeout_ms == 30);
    assert_str(input.spec.idempotency_key, "k");
    assert_int_equal(input.spec.unique_until, UNIQUE_ENDED);
    assert_str(input.about.metadata, "{\"m\": 1}");
    assert_str(input.spec.tags, "[\"a\",\"b\"]");
    assert_str(input.spec.user_id, "u");
    assert_str(input.spec.external_id, "e");
    assert_str(input.spec.context_key, "c");
    assert_str(input.spec.correlation_id, "r");
    assert_str(input.spec.limit_key, "l");
    assert_str(input.category, "g");
    assert_str(input.spec.workflow_id, "w");
    assert_str(input.spec.origin.ref, "me");
    assert_int_equal(input.spec.on_unsatisfied, UNSATISFIED_RUN);
    assert_int_equal(input.spec.recovery_priority, 4);
    assert_false(input.spec.auto_recovery);
    assert_int_equal(input.spec.stall_after_ms, 60);
    assert_str(input.spec.callback.url, "http://127.0.0.1:9/x?y=1");
    assert_int_equal(input.depends_on_count, 1);
    assert_int_equal(input.hash_fields_count, 1);
    assert_int_equal(input.spec.input_hash.len, 64);
    arena_deinit(&arena);
}

static void wrong_members_are_refused_with_their_field(void **state)
{
    static const struct {
        const char *member; /* beside "type":"t" */
        const char *field;
    } rows[] = {
        {"\"typ\":1", "typ"}, {"\"parent_id\":" ID_A, "parent_id"}, {"\"Queue\":\"q\"", "Queue"},
        {"\"input_hash\":\"x\"", "input_hash"}, {"\"\":1", ""},
        {"\"queue\":1", "queue"}, {"\"queue\":\"\"", "queue"}, {"\"queue\":\"a/b\"", "queue"},
        {"\"queue\":\"a\\nb\"", "queue"}, {"\"name\":\"\"", "name"}, {"\"name\":[]", "name"},
        {"\"name\":\"\\u0085\"", "name"}, {"\"name\":\"\\u007f\"", "name"},
        {"\"priority\":1001", "priority"}, {"\"priority\":-1001", "priority"},
        {"\"priority\":1.5", "priority"}, {"\"priority\":\"urgent\"", "priority"},
        {"\"priority\":\"5\"", "priority"}, {"\"priority\":true", "priority"},
        {"\"priority\":1e300", "priority"}, {"\"delay_ms\":-1", "delay_ms"},
        {"\"delay_ms\":\"5s\"", "delay_ms"}, {"\"delay_ms\":315360000001", "delay_ms"},
        {"\"delay_ms\":9223372036854775808", "delay_ms"}, {"\"run_at\":5", "run_at"},
        {"\"run_at\":\"tomorrow\"", "run_at"}, {"\"run_at\":\"+5m\"", "run_at"},
        {"\"run_at\":\"292277026596-01-01T00:00:00Z\"", "run_at"}, /* F-C10 */
        {"\"run_at\":\"10000-01-01T00:00:00Z\"", "run_at"},
        {"\"run_at\":\"-0001-01-01T00:00:00Z\"", "run_at"},
        {"\"run_at\":\"1969-12-31T23:59:59Z\"", "run_at"},
        {"\"run_at\":\"2027-02-29T00:00:00Z\"", "run_at"},
        {"\"run_at\":\"2027-01-01T00:00:00\"", "run_at"},
        {"\"delay_ms\":0,\"run_at\":\"2027-01-01T00:00:00Z\"", "run_at"},
        {"\"max_retries\":-1", "max_retries"}, {"\"max_retries\":1000001", "max_retries"},
        {"\"max_attempts\":0", "max_attempts"}, {"\"max_attempts\":1000002", "max_attempts"},
        {"\"max_attempts\":2,\"max_retries\":1", "max_attempts"},
        {"\"max_retries\":1,\"max_attempts\":2", "max_attempts"},
        {"\"max_crashes\":-1", "max_crashes"}, {"\"max_continuations\":\"1\"", "max_continuations"},
        {"\"retry_policy\":\"random\"", "retry_policy"}, {"\"retry_policy\":1", "retry_policy"},
        {"\"retry_delay_ms\":-1", "retry_delay_ms"},
        {"\"max_retry_delay_ms\":1e18", "max_retry_delay_ms"}, {"\"timeout_ms\":0", "timeout_ms"},
        {"\"timeout_ms\":0.5", "timeout_ms"}, {"\"idempotency_key\":\"\"", "idempotency_key"},
        {"\"idempotency_key\":5", "idempotency_key"}, {"\"hash_input\":1", "hash_input"},
        {"\"hash_fields\":\"/a\"", "hash_fields"}, {"\"hash_fields\":[]", "hash_fields"},
        {"\"hash_fields\":[\"a\"]", "hash_fields"}, {"\"hash_fields\":[\"/~2\"]", "hash_fields"},
        {"\"hash_fields\":[1]", "hash_fields"},
        {"\"hash_fields\":[\"/a\"],\"hash_input\":false", "hash_input"},
        {"\"unique_until\":\"never\"", "unique_until"}, {"\"metadata\":[]", "metadata"},
        {"\"metadata\":\"{}\"", "metadata"}, {"\"tags\":\"a\"", "tags"}, {"\"tags\":[1]", "tags"},
        {"\"tags\":[\"\"]", "tags"}, {"\"tags\":[[\"a\"]]", "tags"},
        {"\"tags\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\",\"10\",\"11\",\"12\","
         "\"13\",\"14\",\"15\",\"16\",\"17\"]",
         "tags"},
        {"\"user_id\":\"\"", "user_id"}, {"\"external_id\":1", "external_id"},
        {"\"context_key\":{}", "context_key"},
        {"\"correlation_id\":\"a\\r\\nb\"", "correlation_id"},
        {"\"limit_key\":false", "limit_key"}, {"\"category\":7", "category"},
        {"\"workflow_id\":[]", "workflow_id"}, {"\"ref\":\"\"", "ref"},
        {"\"on_unsatisfied\":\"skip\"", "on_unsatisfied"},
        {"\"recovery_priority\":\"high\"", "recovery_priority"},
        {"\"auto_recovery\":\"yes\"", "auto_recovery"}, {"\"stall_after_ms\":-1", "stall_after_ms"},
        {"\"callback_url\":\"ftp://x/\"", "callback_url"},
        {"\"callback_events\":[]", "callback_events"},
        {"\"callback_events\":[\"begun\"]", "callback_events"},
        {"\"callback_events\":\"ended\"", "callback_events"},
        {"\"callback_url\":\"http://\"", "callback_url"},
        {"\"callback_url\":\"http:///x\"", "callback_url"},
        {"\"callback_url\":\"http://:80/\"", "callback_url"},
        {"\"callback_url\":\"http://127.0.0.1@evil.test/\"", "callback_url"},
        {"\"callback_url\":\"http://127.0.0.1\\\\@evil.test/\"", "callback_url"},
        {"\"callback_url\":\"http://a/ b\"", "callback_url"},
        {"\"callback_url\":\"http://a/\\u00e9\"", "callback_url"},
        {"\"callback_url\":\"127.0.0.1/x\"", "callback_url"},
        {"\"depends_on\":" ID_A, "depends_on"}, {"\"depends_on\":[\"a\"]", "depends_on"},
        {"\"depends_on\":[1]", "depends_on"}, {"\"depends_on\":[{}]", "depends_on"},
        {"\"depends_on\":[{\"task\":" ID_A ",\"ref\":\"a\"}]", "depends_on"},
        {"\"depends_on\":[{\"task\":" ID_A ",\"type\":\"never\"}]", "depends_on"},
        {"\"depends_on\":[{\"task\":" ID_A ",\"kind\":\"success\"}]", "depends_on"},
        {"\"depends_on\":[{\"type\":\"success\"}]", "depends_on"},
        {"\"depends_on\":[{\"ref\":\"\"}]", "depends_on"},
        {"\"depends_on\":[\"00000000-0000-0000-0000-000000000000\"]", "depends_on"},
        {"\"depends_on\":[" ID_A "," ID_A "]", "depends_on"},
        {"\"depends_on\":[" ID_A ",{\"task\":" ID_A ",\"type\":\"failure\"}]", "depends_on"},
        {"\"depends_on\":[{\"ref\":\"nobody\"}]", "depends_on"},
    };
    struct arena arena = ARENA_INIT(1 << 20);

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct str text = arena_format(&arena, "{\"type\":\"t\",%s}", rows[i].member);
        struct task_input input;
        struct err err = {0};

        if (parse_with(text.data, NULL, &arena, &input, &err) != -ERR_INVALID ||
            strcmp(err.field, rows[i].field) != 0 || !err.text[0])
            fail_msg("%s: code %d field '%s' %s", rows[i].member, (int)err.code, err.field,
                     err.text);
    }
    arena_deinit(&arena);
}

static void task_without_a_type_is_refused(void **state)
{
    static const char *const rows[] = {"{}", "{\"payload\":1}", "{\"type\":null}",
                                       "{\"type\":\"\"}", "{\"type\":5}", "{\"type\":\"a\\tb\"}"};
    struct arena arena = ARENA_INIT(1 << 20);

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct task_input input;
        struct err err = {0};

        assert_int_equal(parse_with(rows[i], NULL, &arena, &input, &err), -ERR_INVALID);
        assert_string_equal(err.field, "type");
    }
    arena_deinit(&arena);
}

static void values_at_their_bounds_are_accepted(void **state)
{
    static const char *const rows[] = {
        "\"priority\":1000", "\"priority\":-1000", "\"priority\":1e1", "\"delay_ms\":315360000000",
        "\"run_at\":\"9999-12-31T23:59:59Z\"", "\"run_at\":\"1970-01-01T00:00:00Z\"",
        "\"run_at\":\"2038-01-19T03:14:08+01:00\"", "\"max_retries\":1000000", "\"max_attempts\":1",
        "\"retry_delay_ms\":0", "\"timeout_ms\":1", "\"queue\":\"a:b c\"", "\"tags\":[]",
        "\"depends_on\":[]", "\"hash_fields\":[\"\"]", "\"payload\":null", "\"data\":null",
        "\"queue\":null,\"priority\":null,\"metadata\":null,\"depends_on\":null,\"run_at\":null",
        "\"callback_url\":\"https://[::1]:8443\"", "\"callback_url\":\"http://localhost?x\"",
        "\"\\u006eame\":\"escaped key\"",
        "\"depends_on\":[" ID_A ",{\"task\":" ID_B ",\"type\":\"completion\"}]",
    };
    struct arena arena = ARENA_INIT(1 << 20);

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++)
        parsed(arena_format(&arena, "{\"type\":\"t\",%s}", rows[i]).data, NULL, &arena);
    arena_deinit(&arena);
}

/* A task with one member whose value is `open`, then bytes times 'x', then `close`. */
static int parse_long(const char *member, const char *open, size_t bytes, const char *close,
                      struct err *err)
{
    struct arena arena = ARENA_INIT(0);
    struct buf text = BUF_INIT(4 << 20);
    struct task_input input;
    int rc;

    buf_format(&text, "{\"priority\":1,\"%s\":%s", member, open);
    for (size_t i = 0; i < bytes; i++)
        buf_byte(&text, 'x');
    buf_format(&text, "%s%s}", close, strcmp(member, "type") == 0 ? "" : ",\"type\":\"t\"");
    buf_byte(&text, '\0');
    *err = (struct err){0};
    rc = parse_with(text.data, NULL, &arena, &input, err);
    buf_deinit(&text);
    arena_deinit(&arena);
    return rc;
}

static void sizes_are_bounded_to_the_byte(void **state)
{
    static const struct {
        const char *member, *open, *close;
        size_t fits;
        enum err_code code;
    } rows[] = {
        {"payload", "\"", "\"", BOUND_PAYLOAD_BYTES - 2, ERR_TOO_LARGE},
        {"data", "\"", "\"", BOUND_DATA_BYTES - 2, ERR_TOO_LARGE},
        {"metadata", "{\"a\":\"", "\"}", BOUND_METADATA_BYTES - 8, ERR_TOO_LARGE},
        {"type", "\"", "\"", 200, ERR_INVALID},
        {"name", "\"", "\"", 200, ERR_INVALID},
        {"queue", "\"", "\"", 200, ERR_INVALID},
        {"category", "\"", "\"", 200, ERR_INVALID},
        {"ref", "\"", "\"", 200, ERR_INVALID},
        {"idempotency_key", "\"", "\"", 256, ERR_INVALID},
        {"user_id", "\"", "\"", 256, ERR_INVALID},
        {"external_id", "\"", "\"", 256, ERR_INVALID},
        {"context_key", "\"", "\"", 256, ERR_INVALID},
        {"correlation_id", "\"", "\"", 256, ERR_INVALID},
        {"limit_key", "\"", "\"", 256, ERR_INVALID},
        {"workflow_id", "\"", "\"", 256, ERR_INVALID},
        {"tags", "[\"", "\"]", 200, ERR_INVALID},
        {"hash_fields", "[\"/", "\"]", 255, ERR_INVALID},
        {"callback_url", "\"http://a/", "\"", 2048 - 9, ERR_INVALID},
    };
    struct err err;

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        if (parse_long(rows[i].member, rows[i].open, rows[i].fits, rows[i].close, &err) < 0)
            fail_msg("%s: %s", rows[i].member, err.text);
        assert_int_equal(parse_long(rows[i].member, rows[i].open, rows[i].fits + 1, rows[i].close,
                                    &err),
                         -(int)rows[i].code);
        assert_string_equal(err.field, rows[i].member);
    }
}

static void priority_is_a_number_or_a_level(void **state)
{
    static const struct {
        const char *text;
        int64_t priority;
    } rows[] = {{"\"low\"", -10}, {"\"medium\"", 0}, {"\"high\"", 10}, {"\"critical\"", 20},
                {"-1000", -1000}, {"1e3", 1000}, {"7.0", 7}};
    struct arena arena = ARENA_INIT(1 << 20);
    int64_t priority;

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct task_input input = parsed(
            arena_format(&arena, "{\"type\":\"t\",\"priority\":%s}", rows[i].text).data, NULL,
            &arena);

        assert_int_equal(input.priority, rows[i].priority);
        assert_true(input.has_priority);
    }
    assert_true(priority_parse(STR("critical"), &priority) && priority == 20);
    assert_true(priority_parse(STR("-5"), &priority) && priority == -5);
    assert_false(priority_parse(STR("1001"), &priority));
    assert_false(priority_parse(STR("urgent"), &priority));
    assert_false(priority_parse(STR(""), &priority));
    arena_deinit(&arena);
}

static void max_attempts_is_one_more_than_max_retries(void **state)
{
    struct arena arena = ARENA_INIT(1 << 20);
    struct task_input input = parsed("{\"type\":\"t\",\"max_attempts\":5}", NULL, &arena);

    (void)state;
    assert_int_equal(input.spec.retry.max_retries, 4);
    assert_true(input.has_max_retries);
    arena_deinit(&arena);
}

static void null_payload_is_kept_as_the_value_it_is(void **state)
{
    struct arena arena = ARENA_INIT(1 << 20);

    (void)state;
    assert_str(parsed("{\"type\":\"t\",\"payload\": null }", NULL, &arena).spec.payload, "null");
    arena_deinit(&arena);
}

static const struct handler_rule handlers[] = {
    {.type = STR("email:*"), .timeout_ms = 30000, .max_retries = 5, .retry_delay_ms = 7,
     .max_retry_delay_ms = 70, .has_retry_policy = true, .retry_policy = RETRY_EXPONENTIAL,
     .hash_input = true},
    {.type = STR("report"), .timeout_ms = -1, .max_retries = -1, .retry_delay_ms = -1,
     .max_retry_delay_ms = -1},
};

static const struct priority_rule rules[] = {
    {.type = STR("email:bulk:*"), .priority = -50},
    {.metadata_pointer = STR("/customer/tier"), .metadata_equals = STR("\"gold\""), .priority = 50},
    {.type = STR("report"), .metadata_pointer = STR("/n"), .metadata_equals = STR("10"),
     .priority = 5},
    {.metadata_pointer = STR("/flagged"), .priority = 9},
};

static const struct settings settings = {.handlers = handlers, .handlers_count = ROWS(handlers),
                                         .enqueue = {.rules = rules, .rules_count = ROWS(rules)}};

static void type_gives_what_the_task_does_not_say(void **state)
{
    struct arena arena = ARENA_INIT(1 << 20);
    struct task_input input = parsed("{\"type\":\"email:send\"}", &settings, &arena);

    (void)state;
    assert_int_equal(input.spec.timeout_ms, 30000);
    assert_int_equal(input.spec.retry.max_retries, 5);
    assert_int_equal(input.spec.retry.delay_ms, 7);
    assert_int_equal(input.spec.retry.max_delay_ms, 70);
    assert_int_equal(input.spec.retry.policy, RETRY_EXPONENTIAL);
    assert_int_equal(input.spec.input_hash.len, 64);
    input = parsed("{\"type\":\"email:send\",\"timeout_ms\":1,\"max_attempts\":1,"
                   "\"retry_delay_ms\":2,\"max_retry_delay_ms\":3,\"retry_policy\":\"polynomial\","
                   "\"hash_input\":false}",
                   &settings, &arena);
    assert_int_equal(input.spec.timeout_ms, 1);
    assert_int_equal(input.spec.retry.max_retries, 0);
    assert_int_equal(input.spec.retry.delay_ms, 2);
    assert_int_equal(input.spec.retry.max_delay_ms, 3);
    assert_int_equal(input.spec.retry.policy, RETRY_POLYNOMIAL);
    assert_null(input.spec.input_hash.data);
    input = parsed("{\"type\":\"report\"}", &settings, &arena);
    assert_int_equal(input.spec.timeout_ms, TASK_DEFAULT_TIMEOUT_MS);
    assert_int_equal(input.spec.retry.max_retries, TASK_DEFAULT_MAX_RETRIES);
    arena_deinit(&arena);
}

static void first_matching_rule_sets_the_priority(void **state) /* C5 */
{
    static const struct {
        const char *task;
        int64_t priority;
    } rows[] = {
        {"{\"type\":\"email:bulk:1\"}", -50},
        {"{\"type\":\"email:bulk:1\",\"metadata\":{\"customer\":{\"tier\":\"gold\"}}}", -50},
        {"{\"type\":\"x\",\"metadata\":{\"customer\":{\"tier\":\"gold\"}}}", 50},
        {"{\"type\":\"x\",\"metadata\":{\"customer\":{\"tier\":\"g\\u006fld\"}}}", 50},
        {"{\"type\":\"x\",\"metadata\":{\"customer\":{\"tier\":\"silver\"}}}", 0},
        {"{\"type\":\"x\",\"metadata\":{\"customer\":\"gold\"}}", 0},
        {"{\"type\":\"report\",\"metadata\":{\"n\":1e1}}", 5},
        {"{\"type\":\"report\",\"metadata\":{\"n\":10.0}}", 5},
        {"{\"type\":\"report\",\"metadata\":{\"n\":\"10\"}}", 0},
        {"{\"type\":\"other\",\"metadata\":{\"n\":10}}", 0},
        {"{\"type\":\"other\",\"metadata\":{\"flagged\":null}}", 9},
        {"{\"type\":\"email:bulk:1\",\"priority\":3}", 3},
        {"{\"type\":\"email:bulk:1\",\"priority\":0}", 0},
        {"{\"type\":\"report\"}", 0},
    };
    struct arena arena = ARENA_INIT(1 << 20);

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++)
        if (parsed(rows[i].task, &settings, &arena).priority != rows[i].priority)
            fail_msg("%s", rows[i].task);
    arena_deinit(&arena);
}

static struct str hash_of(const char *members, struct arena *arena)
{
    struct str text = arena_format(arena, "{\"type\":\"t\",\"hash_input\":true%s}", members);

    return parsed(text.data, NULL, arena).spec.input_hash;
}

static void input_hash_is_SHA_256_of_the_canonical_payload(void **state) /* A3 */
{
    struct arena arena = ARENA_INIT(1 << 20);

    (void)state;
    /* printf %s '{"a":1,"b":[1.5,"é"]}' | sha256sum */
    assert_str(hash_of(",\"payload\":{ \"b\":[15e-1,\"\\u00e9\"], \"a\":1.0 }", &arena),
               "2bb202b35963ad9e57f87e5828e072cc53f4720ecd10a7d625f850411a31c4c6");
    /* printf null | sha256sum */
    assert_str(hash_of("", &arena),
               "74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b");
    assert_str(hash_of(",\"payload\":null", &arena),
               "74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b");
    assert_false(str_eq(hash_of(",\"payload\":1", &arena), hash_of(",\"payload\":\"1\"", &arena)));
    arena_deinit(&arena);
}

static void hash_fields_take_only_the_parts_they_name(void **state) /* A3 */
{
    struct arena arena = ARENA_INIT(1 << 20);
    struct str hash = hash_of(",\"payload\":{\"order\":{\"id\":7},\"at\":1},"
                              "\"hash_fields\":[\"/order/id\",\"/gone\"]",
                              &arena);

    (void)state;
    /* printf %s '{"/gone":null,"/order/id":7}' | sha256sum */
    assert_str(hash, "0fdf54133e4d401bc810f206dc8a9556a12e798cc59daaa8c6c03e12c2e6c734");
    assert_true(str_eq(hash, hash_of(",\"payload\":{\"at\":2,\"order\":{\"id\":7.0}},"
                                     "\"hash_fields\":[\"/gone\",\"/order/id\",\"/gone\"]",
                                     &arena)));
    assert_false(str_eq(hash, hash_of(",\"payload\":{\"at\":1,\"order\":{\"id\":8}},"
                                      "\"hash_fields\":[\"/gone\",\"/order/id\"]",
                                      &arena)));
    assert_int_equal(
        parsed("{\"type\":\"t\",\"hash_fields\":[\"/a\"]}", NULL, &arena).spec.input_hash.len, 64);
    arena_deinit(&arena);
}

static void type_that_hashes_does_not_merge_runs_of_a_schedule(void **state)
{
    struct arena arena = ARENA_INIT(1 << 20);
    struct task_input input;
    struct err err = {0};

    (void)state;
    spec_init(&input);
    input.spec.type = STR("email:send");
    input.spec.origin.schedule_id = (struct uuid){{1}};
    assert_int_equal(spec_finish(&input, &settings, &arena, &err), 0);
    assert_null(input.spec.input_hash.data);
    input.spec.origin.schedule_id = (struct uuid){{0}};
    assert_int_equal(spec_finish(&input, &settings, &arena, &err), 0);
    assert_int_equal(input.spec.input_hash.len, 64);
    arena_deinit(&arena);
}

static void inputs_filled_by_hand_are_checked_too(void **state)
{
    struct arena arena = ARENA_INIT(1 << 20);
    struct task_input input;
    struct err err = {0};

    (void)state;
    spec_init(&input);
    assert_int_equal(spec_finish(&input, NULL, &arena, &err), -ERR_INVALID);
    assert_string_equal(err.field, "type");
    input.spec.type = STR("t");
    input.spec.queue = STR("a/b");
    assert_int_equal(spec_finish(&input, NULL, &arena, &err), -ERR_INVALID);
    assert_string_equal(err.field, "queue");
    input.spec.queue = STR("q");
    input.about.metadata.len = BOUND_METADATA_BYTES + 1;
    assert_int_equal(spec_finish(&input, NULL, &arena, &err), -ERR_TOO_LARGE);
    assert_string_equal(err.field, "metadata");
    arena_deinit(&arena);
}

static void small_arena_is_answered_with_out_of_memory(void **state)
{
    (void)state;
    for (size_t bytes = 16; bytes < 400; bytes += 16) {
        struct arena arena = ARENA_INIT(bytes);
        struct task_input input;
        struct err err = {0};
        int rc = parse_with("{\"type\":\"\\u0074\",\"tags\":[\"\\u0061\"],\"hash_input\":true,"
                            "\"n\\u0061me\":\"\\u0062\",\"depends_on\":[" ID_A "," ID_B "]}",
                            NULL, &arena, &input, &err);

        assert_true(rc == 0 || rc == -ERR_MEMORY);
        arena_deinit(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(type_alone_gives_the_defaults),
        cmocka_unit_test(every_member_reaches_its_place),
        cmocka_unit_test(wrong_members_are_refused_with_their_field),
        cmocka_unit_test(task_without_a_type_is_refused),
        cmocka_unit_test(values_at_their_bounds_are_accepted),
        cmocka_unit_test(sizes_are_bounded_to_the_byte),
        cmocka_unit_test(priority_is_a_number_or_a_level),
        cmocka_unit_test(max_attempts_is_one_more_than_max_retries),
        cmocka_unit_test(null_payload_is_kept_as_the_value_it_is),
        cmocka_unit_test(type_gives_what_the_task_does_not_say),
        cmocka_unit_test(first_matching_rule_sets_the_priority),
        cmocka_unit_test(input_hash_is_SHA_256_of_the_canonical_payload),
        cmocka_unit_test(hash_fields_take_only_the_parts_they_name),
        cmocka_unit_test(type_that_hashes_does_not_merge_runs_of_a_schedule),
        cmocka_unit_test(inputs_filled_by_hand_are_checked_too),
        cmocka_unit_test(small_arena_is_answered_with_out_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
