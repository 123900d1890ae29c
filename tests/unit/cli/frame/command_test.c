/* The command line: help, refusals with exit codes, and requests, all from the one table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "cli/frame/command.h"

struct outcome {
    int code;
    char *out;
    char *notes;
};

#define WORDS_MAX 16

/* Runs "perdura a b c", split at spaces. */
static struct outcome run(const char *line)
{
    char *copy = strdup(line);
    char *argv[WORDS_MAX + 1] = {NULL};
    int argc = 0;
    struct outcome outcome;
    size_t len;
    size_t notes_len;
    FILE *out = open_memstream(&outcome.out, &len);
    FILE *notes = open_memstream(&outcome.notes, &notes_len);

    for (char *word = strtok(copy, " "); word && argc < WORDS_MAX; word = strtok(NULL, " "))
        argv[argc++] = word;
    outcome.code = command_main(argc, argv, out, notes);
    fclose(out);
    fclose(notes);
    free(copy);
    return outcome;
}

static void outcome_deinit(struct outcome *outcome)
{
    free(outcome->out);
    free(outcome->notes);
}

static void wrong_usage_is_one_sentence_and_exit_code_two(void **state)
{
    static const struct {
        const char *line;
        const char *notes;
    } table[] = {
        {"perdura enqeue", "perdura: unknown command 'enqeue'; did you mean 'enqueue'?\n"},
        {"perdura xyzzy", "perdura: unknown command 'xyzzy'; 'perdura help' lists what there is\n"},
        {"perdura task lsit", "perdura: unknown command 'task lsit'; did you mean 'list'?\n"},
        {"perdura task", "perdura: 'perdura task' needs a subcommand; 'perdura task --help' lists "
                         "them\n"},
        {"perdura enqueue", "perdura: 'perdura enqueue' needs TYPE; 'perdura enqueue --help' shows "
                            "an example\n"},
        {"perdura enqueue a b", "perdura: 'perdura enqueue' does not know what to do with 'b'; "
                                "'perdura enqueue --help' shows its arguments\n"},
        {"perdura enqueue a --prioritty 5", "perdura: 'perdura enqueue' has no flag '--prioritty'; "
                                            "did you mean '--priority'?\n"},
        {"perdura --verzion", "perdura: 'perdura' has no flag '--verzion'; did you mean "
                              "'--version'?\n"},
        {"perdura enqueue a --queue", "perdura: --queue needs a value: --queue QUEUE\n"},
        {"perdura enqueue a --queue --wait", "perdura: --queue needs a value: --queue QUEUE\n"},
        {"perdura enqueue a --wait=1", "perdura: --wait is a switch and takes no value\n"},
        {"perdura enqueue a -q x", "perdura: unknown flag '-q'; flags are written with two dashes, "
                                   "'perdura enqueue --help' lists them\n"},
        {"perdura enqueue a --delay 5", "perdura: --delay is '5'; it must be a duration such as "
                                        "500ms, 30s, 5m, 2h, 1d\n"},
        {"perdura enqueue a --at noon", "perdura: --at is 'noon'; it must be a time such as "
                                        "2027-03-28T01:00:00Z, +5m or -5m\n"},
        {"perdura enqueue a --priority urgent", "perdura: --priority is 'urgent'; it must be a "
                                                "number from -1000 to 1000, or low, medium, high, "
                                                "critical\n"},
        {"perdura enqueue a --max-retries -1", "perdura: --max-retries is '-1'; it must be a whole "
                                               "number from 0 to 1000000\n"},
        {"perdura enqueue a --retry-policy often", "perdura: --retry-policy is 'often'; it must be "
                                                   "one of polynomial|exponential|linear|fixed\n"},
        {"perdura enqueue a --delay 1s --at +1s", "perdura: --delay and --at both set the start; "
                                                  "give one of them\n"},
        {"perdura queue limit default", "perdura: nothing to change; give at least one limit, such "
                                        "as --concurrency 10 or --rate 100/s\n"},
        {"perdura queue limit default --rate fast", "perdura: --rate is 'fast'; it must be a rate "
                                                    "such as 100/s, 20/m or 5/10s, with a burst "
                                                    "such as '5/s burst 10', or none; the count "
                                                    "and the burst are 1 to 1000000000, the period "
                                                    "is 1ms to 3650d\n"},
        {"perdura enqueue a --server ftp://x", "perdura: the server is 'ftp://x'; write it like "
                                               "http://127.0.0.1:7070\n"},
        {"perdura completion tcsh", "perdura: there is no completion for 'tcsh'; there is one for "
                                    "bash, zsh and fish\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct outcome outcome = run(table[i].line);

        assert_string_equal(outcome.notes, table[i].notes);
        assert_string_equal(outcome.out, "");
        assert_int_equal(outcome.code, 2);
        outcome_deinit(&outcome);
    }
}

static void bad_json_is_refused_before_anything_is_sent(void **state)
{
    struct outcome outcome = run("perdura enqueue a --payload {oops}");

    (void)state;
    assert_int_equal(outcome.code, 2);
    assert_non_null(strstr(outcome.notes, "--payload is not valid JSON: "));
    outcome_deinit(&outcome);
    outcome = run("perdura enqueue a --payload @/nonexistent/file");
    assert_int_equal(outcome.code, 1);
    assert_non_null(strstr(outcome.notes, "cannot read /nonexistent/file: No such file"));
    outcome_deinit(&outcome);
}

static void an_id_that_cannot_be_one_is_not_found(void **state)
{
    struct outcome outcome = run("perdura task show something");

    (void)state;
    assert_int_equal(outcome.code, 3);
    assert_string_equal(outcome.notes, "perdura: there is no task 'something'; 'perdura task list' "
                                       "shows the ids\n");
    outcome_deinit(&outcome);
}

static void a_server_that_is_not_there_is_said_with_the_way_out(void **state)
{
    struct outcome outcome = run("perdura stats --server http://127.0.0.1:1");

    (void)state;
    assert_int_equal(outcome.code, 1);
    assert_non_null(strstr(outcome.notes, "cannot reach the server at http://127.0.0.1:1: "));
    assert_non_null(strstr(outcome.notes, "start one with 'perdura serve' or pass --server URL"));
    outcome_deinit(&outcome);
}

static void check_help(const struct command *command, struct str path, struct arena *arena)
{
    struct str line = arena_format(arena, "perdura " STR_FMT " --help", STR_ARG(path));
    struct outcome outcome = run(line.data);
    const struct flag *flag;

    assert_int_equal(outcome.code, 0);
    assert_non_null(strstr(outcome.out, command->summary));
    assert_non_null(strstr(outcome.out, "Examples"));
    assert_non_null(command->example);
    for (uint32_t i = 0; (flag = command_flag_at(command, i)) != NULL; i++) {
        assert_non_null(strstr(outcome.out, flag->name));
        assert_non_null(flag->help);
        for (uint32_t other = 0; other < i; other++) /* each is shown once */
            assert_string_not_equal(command_flag_at(command, other)->name, flag->name);
        if (flag->fallback)
            assert_int_equal(flag_check(flag, str_of(flag->fallback), NULL), 0);
        if (flag->type == FLAG_WORD)
            assert_non_null(flag->choices);
        if (flag->type != FLAG_BOOL && flag->type != FLAG_NO)
            assert_non_null(flag->value);
    }
    outcome_deinit(&outcome);
    for (uint32_t i = 0; command->subcommands && command->subcommands[i]; i++)
        check_help(command->subcommands[i],
                   arena_format(arena, STR_FMT "%s%s", STR_ARG(path), path.len ? " " : "",
                                command->subcommands[i]->name), arena);
}

static void every_command_has_help_with_an_example_and_sound_flags(void **state)
{
    struct arena arena = ARENA_INIT(1024 * 1024);

    (void)state;
    check_help(&command_root, STR(""), &arena);
    arena_deinit(&arena);
}

static void help_is_the_same_however_it_is_asked_for(void **state)
{
    struct outcome asked = run("perdura help task list");
    struct outcome flagged = run("perdura task list --help");
    struct outcome bare = run("perdura");
    struct outcome root = run("perdura --help");

    (void)state;
    assert_string_equal(asked.out, flagged.out);
    assert_string_equal(bare.out, root.out);
    assert_int_equal(bare.code, 0);
    assert_null(strstr(bare.out, "scdoc"));
    outcome_deinit(&asked);
    outcome_deinit(&flagged);
    outcome_deinit(&bare);
    outcome_deinit(&root);
}

static void completions_and_manual_pages_know_every_command(void **state)
{
    static const char *const lines[] = {"perdura completion bash", "perdura completion zsh",
                                        "perdura completion fish", "perdura man"};

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct outcome outcome = run(lines[i]);

        assert_int_equal(outcome.code, 0);
        for (uint32_t j = 0; command_root.subcommands[j]; j++)
            if (!command_root.subcommands[j]->hidden)
                assert_non_null(strstr(outcome.out, command_root.subcommands[j]->name));
        outcome_deinit(&outcome);
    }
}

static void version_is_printed_for_people_and_programs(void **state)
{
    struct outcome people = run("perdura version");
    struct outcome flag = run("perdura --version");
    struct outcome program = run("perdura version --json");

    (void)state;
    assert_string_equal(people.out, "perdura " PERDURA_VERSION "\n");
    assert_string_equal(flag.out, people.out);
    assert_int_equal(json_check(str_of(program.out), NULL, NULL), 0);
    outcome_deinit(&people);
    outcome_deinit(&flag);
    outcome_deinit(&program);
}

/* A call as the parser would make it, for what becomes of its flags. */
static void make_call(struct call *call, const struct command *command, struct flag_value *values,
                      uint32_t count)
{
    *call = (struct call){.command = command, .arena = ARENA_INIT(1024 * 1024), .values = values,
                          .values_count = count};
}

static void flags_become_fields_and_queries_of_the_api(void **state)
{
    static const struct flag flags[] = {
        {.name = "payload", .type = FLAG_JSON, .value = "J", .field = "payload"},
        {.name = "priority", .type = FLAG_PRIORITY, .value = "P", .field = "priority"},
        {.name = "delay", .type = FLAG_DURATION, .value = "D", .field = "delay_ms"},
        {.name = "at", .type = FLAG_TIME, .value = "T", .field = "run_at"},
        {.name = "tag", .type = FLAG_LIST, .value = "T", .field = "tags"},
        {.name = "rate", .type = FLAG_RATE, .value = "R", .field = "rate"},
        {.name = "key", .type = FLAG_TEXT, .value = "K", .field = "key"},
        {.name = "quiet", .type = FLAG_NO, .field = "loud"},
        {0}};
    static const struct command command = {.name = "x", .flags = flags};
    struct flag_value values[] = {
        {&flags[0], STR(" {\"a\":0.10} ")}, {&flags[1], STR("high")}, {&flags[2], STR("5m")},
        {&flags[3], STR("2027-03-28T03:00:00+02:00")}, {&flags[4], STR("a,b")},
        {&flags[4], STR("c\"d")}, {&flags[5], STR("20/m")}, {&flags[6], STR("12")},
        {&flags[7], STR("")}};
    struct buf out = BUF_INIT(4096);
    struct call call;

    (void)state;
    make_call(&call, &command, values, sizeof values / sizeof values[0]);
    buf_byte(&out, '{');
    assert_int_equal(call_write_fields(&call, &out), 0);
    buf_text(&out, "}");
    buf_byte(&out, '\0');
    assert_string_equal(out.data,
                        "{\"payload\":{\"a\":0.10},\"priority\":\"high\",\"delay_ms\":300000,"
                        "\"run_at\":\"2027-03-28T01:00:00.000000Z\","
                        "\"tags\":[\"a\",\"b\",\"c\\\"d\"],"
                        "\"rate\":{\"count\":20,\"per_ms\":60000,\"burst\":null},\"key\":\"12\","
                        "\"loud\":false}");
    buf_reset(&out);
    call.values = values + 6;
    call.values_count = 1;
    values[6] = (struct flag_value){&flags[6], STR("a b&c/\xc3\xa9")};
    assert_int_equal(call_write_query(&call, &out), 0);
    buf_byte(&out, '\0');
    assert_string_equal(out.data, "?key=a%20b%26c%2F%C3%A9");
    buf_deinit(&out);
    arena_deinit(&call.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_usage_is_one_sentence_and_exit_code_two),
        cmocka_unit_test(bad_json_is_refused_before_anything_is_sent),
        cmocka_unit_test(an_id_that_cannot_be_one_is_not_found),
        cmocka_unit_test(a_server_that_is_not_there_is_said_with_the_way_out),
        cmocka_unit_test(every_command_has_help_with_an_example_and_sound_flags),
        cmocka_unit_test(help_is_the_same_however_it_is_asked_for),
        cmocka_unit_test(completions_and_manual_pages_know_every_command),
        cmocka_unit_test(version_is_printed_for_people_and_programs),
        cmocka_unit_test(flags_become_fields_and_queries_of_the_api),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
