/* The library with an encrypted store in this process: the file holds no clear text, and without the
 * key nothing is shown, handed out or stored in the clear (F-J2, F-J10). */
#include "lib_fixture.h"

static const unsigned char KEY[PD_KEY_BYTES] = {1, 2, 3};
static const unsigned char OTHER_KEY[PD_KEY_BYTES] = {1, 2, 4};

static int open_with(struct fixture *fixture, const unsigned char *bytes, int all)
{
    const struct pd_encryption_key key = {"k1", bytes};
    struct pd_options options = PD_OPTIONS_INIT;

    options.allow_network_fs = 1;
    options.encrypt_all = all;
    if (bytes) {
        options.encryption_keys = &key;
        options.encryption_keys_count = 1;
    }
    return pd_open(fixture->path, &options, &fixture->pd);
}

static void reopen(struct fixture *fixture, const unsigned char *bytes, int all)
{
    pd_worker_free(fixture->worker);
    fixture->worker = NULL;
    pd_close(fixture->pd);
    assert_int_equal(open_with(fixture, bytes, all), PD_OK);
}

static int setup_keyed(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    assert_non_null(fixture);
    snprintf(fixture->folder, sizeof fixture->folder, "/tmp/perdura-lib-XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    snprintf(fixture->path, sizeof fixture->path, "%s/p.db", fixture->folder);
    OK(fixture, open_with(fixture, KEY, 0));
    *state = fixture;
    return 0;
}

/* Of all files in the folder. */
static int is_stored(const struct fixture *fixture, const char *text)
{
    static char bytes[16 << 20];
    DIR *folder = opendir(fixture->folder);
    struct dirent *entry;
    int found = 0;

    assert_non_null(folder);
    while ((entry = readdir(folder))) {
        char path[512];
        size_t len;
        FILE *file;

        snprintf(path, sizeof path, "%s/%s", fixture->folder, entry->d_name);
        file = fopen(path, "r");
        len = file ? fread(bytes, 1, sizeof bytes, file) : 0;
        found |= memmem(bytes, len, text, strlen(text)) != NULL;
        if (file)
            fclose(file);
    }
    closedir(folder);
    return found;
}

static void expect_payload(struct fixture *fixture, const char *id, const char *payload)
{
    struct pd_result result = PD_RESULT_INIT;

    OK(fixture, pd_get(fixture->pd, id, &result));
    assert_string_equal(result.payload, payload);
    pd_result_free(&result);
}

static int enqueue_secret(struct fixture *fixture, char *id)
{
    struct pd_task_spec spec = PD_TASK_SPEC_INIT;

    spec.type = "secret";
    spec.payload = "\"canary\"";
    spec.encrypt = 1;
    return pd_enqueue(fixture->pd, &spec, id);
}

static int answer(struct pd_task *task, void *ctx)
{
    (void)ctx;
    return pd_task_set_result(task, pd_task_payload(task));
}

static void f_j10_an_encrypted_store_holds_no_clear_text(void **state)
{
    struct fixture *fixture = *state;
    struct pd_result result = PD_RESULT_INIT;
    char id[PD_ID_BYTES];

    OK(fixture, enqueue_secret(fixture, id));
    expect_payload(fixture, id, "\"canary\"");
    start_worker(fixture, "secret", answer, NULL);
    OK(fixture, pd_wait(fixture->pd, id, WAIT_MS, &result));
    assert_string_equal(result.result, "\"canary\"");
    pd_result_free(&result);
    assert_false(is_stored(fixture, "canary"));
    assert_true(is_stored(fixture, "pdx1|"));
}

static void only_the_members_named_are_encrypted(void **state)
{
    struct fixture *fixture = *state;
    struct pd_task_spec spec = PD_TASK_SPEC_INIT;
    const char *const fields[] = {"/card/number"};
    char id[PD_ID_BYTES];

    spec.type = "pay";
    spec.payload = "{\"card\":{\"number\":\"canary\",\"of\":\"shown-as-it-is\"}}";
    spec.encrypt_fields = fields;
    spec.encrypt_fields_count = 1;
    OK(fixture, pd_enqueue(fixture->pd, &spec, id));
    expect_payload(fixture, id, spec.payload);
    assert_false(is_stored(fixture, "canary"));
    assert_true(is_stored(fixture, "shown-as-it-is"));
}

static void with_encrypt_all_no_task_has_to_ask(void **state)
{
    struct fixture *fixture = *state;
    char id[PD_ID_BYTES];

    reopen(fixture, KEY, 1);
    enqueue(fixture, "any", "\"canary\"", id);
    expect_payload(fixture, id, "\"canary\"");
    assert_false(is_stored(fixture, "canary"));
}

static void f_j2_without_the_key_an_encrypted_store_fails_closed(void **state)
{
    struct fixture *fixture = *state;
    struct pd_result result = PD_RESULT_INIT;
    char secret[PD_ID_BYTES], plain[PD_ID_BYTES];

    OK(fixture, enqueue_secret(fixture, secret));
    reopen(fixture, NULL, 0);
    expect_payload(fixture, secret, "{\"encrypted\":true}");
    assert_int_equal(enqueue_secret(fixture, NULL), PD_EUNAVAILABLE);
    assert_non_null(strstr(pd_error(fixture->pd), "encrypted"));
    start_worker(fixture, "secret", answer, NULL);
    enqueue(fixture, "secret", "\"plain\"", plain);
    OK(fixture, pd_wait(fixture->pd, plain, WAIT_MS, &result));
    pd_result_free(&result);
    assert_int_equal(status_of(fixture, secret), PD_STATUS_DELAYED);
    reopen(fixture, NULL, 1);
    assert_int_equal(enqueue_secret(fixture, NULL), PD_EUNAVAILABLE);
    reopen(fixture, KEY, 0);
    expect_payload(fixture, secret, "\"canary\"");
    assert_false(is_stored(fixture, "canary"));
}

static void another_key_of_the_same_id_opens_nothing(void **state)
{
    struct fixture *fixture = *state;
    char id[PD_ID_BYTES];

    OK(fixture, enqueue_secret(fixture, id));
    reopen(fixture, OTHER_KEY, 0);
    expect_payload(fixture, id, "{\"encrypted\":true,\"damaged\":true}");
    assert_int_equal(enqueue_secret(fixture, NULL), PD_EUNAVAILABLE);
    assert_false(is_stored(fixture, "canary"));
}

static void keys_that_make_no_sense_are_refused(void **state)
{
    struct fixture *fixture = *state;
    const struct pd_encryption_key keys[] = {{"k1", KEY}, {"", KEY}};
    struct pd_options options = PD_OPTIONS_INIT;

    pd_close(fixture->pd);
    options.allow_network_fs = 1;
    options.encryption_keys = keys;
    options.encryption_keys_count = 2;
    assert_int_equal(pd_open(fixture->path, &options, &fixture->pd), PD_EINVALID);
    pd_close(fixture->pd);
    options.encryption_keys_count = 1;
    options.encryption_current = "k2";
    assert_int_equal(pd_open(fixture->path, &options, &fixture->pd), PD_EINVALID);
    pd_close(fixture->pd);
    OK(fixture, open_with(fixture, KEY, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(f_j10_an_encrypted_store_holds_no_clear_text, setup_keyed,
                                        teardown),
        cmocka_unit_test_setup_teardown(only_the_members_named_are_encrypted, setup_keyed,
                                        teardown),
        cmocka_unit_test_setup_teardown(with_encrypt_all_no_task_has_to_ask, setup_keyed, teardown),
        cmocka_unit_test_setup_teardown(f_j2_without_the_key_an_encrypted_store_fails_closed,
                                        setup_keyed, teardown),
        cmocka_unit_test_setup_teardown(another_key_of_the_same_id_opens_nothing, setup_keyed,
                                        teardown),
        cmocka_unit_test_setup_teardown(keys_that_make_no_sense_are_refused, setup_keyed,
                                        teardown)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
