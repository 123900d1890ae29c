/* C9: `models:`, `agents:` and `tools:` of a configuration, and what is refused in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "cli/config/config.h"

#define MODEL "models:\n  - {name: default, url: \"http://127.0.0.1:1/v1\", model: m}\n"
#define TOOL(more) "tools:\n  - {name: t, " more "}\n"

static void what_a_configuration_says_is_what_agents_get(void **state)
{
    CONFIG_AUTO struct config config = {0};
    struct err err = {0};
    static const char text[] =
        "models:\n"
        "  - name: default\n    url: https://api.example/v1\n    model: m\n"
        "    key: {env: NOT_READ_HERE}\n    price: {input: 0.15, output: 1.000001}\n"
        "agents:\n"
        "  - id: a\n    tools: [t]\n"
        "    types: [{type: \"x:*\", tools: [u]}, {type: \"x:y\"}]\n"
        "    budget: {tokens: 7, cost: 0.5, time: 10m, on_exceeded: fail, day: {calls: 9}}\n"
        "tools:\n"
        "  - name: t\n    command: [./t]\n    safe_to_retry: true\n"
        "    parameters: {type: object, properties: {q: {type: string, enum: [\"1\", on]}}}\n"
        "  - {name: u, url: \"https://tools.example/u\"}\n"
        "handlers:\n  - {type: \"x:*\", agent: a}\n";
    const struct agent_settings *agents = &config.settings.agents;

    (void)state;
    assert_int_equal(config_init_defaults(&config, &err), 0);
    if (config_parse(&config, STR(text), "p.yaml", &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(config_check(&config, "p.yaml", &err), 0);
    assert_int_equal(agents->models[0].price_input, 150000);
    assert_int_equal(agents->models[0].price_output, 1000001);
    assert_int_equal(agents->models[0].timeout_ms, 120000);
    assert_true(agents->models[0].stream);
    assert_int_equal(agents->agents[0].budget.calls, 50); /* a loop ends without a word, too */
    assert_int_equal(agents->agents[0].budget.cost, 500000);
    assert_int_equal(agents->agents[0].budget.time_ms, 600000);
    assert_int_equal(agents->agents[0].day.calls, 9);
    assert_true(str_is(agents->agents[0].on_exceeded, "fail"));
    assert_true(str_is(agents->agents[0].model, "default"));
    assert_true(str_is(agents->tools[0].parameters,
                       "{\"type\":\"object\",\"properties\":{\"q\":{\"type\":\"string\","
                       "\"enum\":[\"1\",\"on\"]}}}"));
    assert_true(agents->tools[0].safe_to_retry);
    assert_false(agents->tools[1].safe_to_retry);
    assert_ptr_equal(agent_type_of(&agents->agents[0], STR("x:z")), &agents->agents[0].types[0]);
    assert_ptr_equal(agent_type_of(&agents->agents[0], STR("x:y")), &agents->agents[0].types[1]);
    assert_null(agent_type_of(&agents->agents[0], STR("y")));
}

static void what_cannot_work_is_refused_with_its_line(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"models:\n  - {name: m, url: \"ftp://x\", model: m}\n", "p.yaml:2: the url of model 'm'"},
        {"models:\n  - {name: m, url: \"http://api.example/v1\", model: m}\n", "beyond loopback"},
        {"models:\n  - {name: \"m m\", url: \"http://127.0.0.1/v1\", model: m}\n", "'m m'"},
        {"models:\n  - {name: m, url: \"http://127.0.0.1/v1\"}\n", "has no 'model'"},
        {"models:\n  - {name: m, url: \"http://127.0.0.1/v1\", model: m, "
         "key: {env: A, file: b}}\n", "two keys"},
        {"models:\n  - {name: m, url: \"http://127.0.0.1/v1\", model: m, price: {input: -1}}\n",
         "price.input"},
        {"models:\n  - {name: m, url: \"http://127.0.0.1/v1\", model: m, "
         "price: {input: 0.1234567}}\n", "at most six decimals"},
        {MODEL "agents:\n  - {id: \"a/b\"}\n", "p.yaml:4: the id 'a/b'"},
        {MODEL "agents:\n  - {id: a}\n  - {id: a}\n", "two entries of agents"},
        {MODEL "agents:\n  - {id: a, model: other}\n", "names the model 'other'"},
        {MODEL "agents:\n  - {id: a, tools: [none]}\n", "names the tool 'none'"},
        {MODEL "agents:\n  - {id: a, types: [{type: x, tools: [none]}]}\n", "the tool 'none'"},
        {MODEL "agents:\n  - {id: a, budget: {on_exceeded: stop}}\n", "on_exceeded"},
        {TOOL("command: [x], url: \"https://x\""), "needs command, service or url"},
        {TOOL("timeout: 1s"), "needs command, service or url"},
        {TOOL("url: \"http://far.example/\""), "beyond loopback"},
        {TOOL("service: s"), "names the service 's'"},
        {"services:\n  - {name: s, url: \"grpcs://x:1\", package: p.S}\n" TOOL("service: s"),
         "names a gRPC service"},
        {"models:\n  - {name: m, url: \"grpcs://x:1\", model: m}\n", "the url of model 'm'"},
        {TOOL("command: [x], method: M"), "method but no service"},
        {TOOL("command: [x], parameters: {type: string}"), "p.yaml:2: tool 't': parameters must"},
        {TOOL("command: [x], parameters: {type: object, oneOf: []}"), "'oneOf'"},
        {TOOL("command: [x], parameters: [1]"), "a mapping that could be JSON"},
        {"tools:\n  - {name: finalAnswer, command: [x]}\n", "not finalAnswer"},
        {"handlers:\n  - {type: x, agent: a}\n", "names the agent 'a'"},
        {"handlers:\n  - {type: x, agent: a, command: [x]}\n", "an agent and a command"}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CONFIG_AUTO struct config config = {0};
        struct err err = {0};
        int rc;

        assert_int_equal(config_init_defaults(&config, &err), 0);
        rc = config_parse(&config, str_of(cases[i].text), "p.yaml", &err);
        if (rc == 0)
            rc = config_check(&config, "p.yaml", &err);
        if (rc == 0 || !strstr(err.text, cases[i].why))
            fail_msg("%s: %s", cases[i].text, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_configuration_says_is_what_agents_get),
        cmocka_unit_test(what_cannot_work_is_refused_with_its_line)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
