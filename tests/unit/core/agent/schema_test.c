/* C9: arguments of tools are checked against a subset of JSON Schema. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "core/agent/schema.h"

static void only_what_is_kept_may_stand_in_a_schema(void **state)
{
    static const struct {
        const char *schema;
        const char *why; /* NULL = fine */
    } cases[] = {
        {"{\"type\":\"object\"}", NULL},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":[\"string\",\"null\"]}}}", NULL},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"items\":"
         "{\"enum\":[1,2]},\"maxItems\":3}},\"required\":[\"a\"],"
         "\"additionalProperties\":false}", NULL},
        {"{\"type\":\"string\"}", "must have the type object"},
        {"{\"properties\":{}}", "must have the type object"},
        {"{\"type\":\"object\",\"pattern\":\"x\"}", "'pattern'"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#\"}}}", "'$ref' at /a"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"text\"}}}", "the type at /a"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":[]}}}", "the type at /a"},
        {"{\"type\":\"object\",\"properties\":[]}", "must be a mapping"},
        {"{\"type\":\"object\",\"required\":[1]}", "required"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"minimum\":\"1\"}}}", "minimum at /a"},
        {"{\"type\":\"object\",\"additionalProperties\":{}}", "'additionalProperties'"},
        {"[]", "must be a mapping"}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err err = {0};
        int rc = schema_check(str_of(cases[i].schema), &err);

        if (!cases[i].why)
            assert_int_equal(rc, 0);
        else if (rc == 0 || !strstr(err.text, cases[i].why))
            fail_msg("%s: %s", cases[i].schema, err.text);
    }
}

static void wrong_arguments_are_named_with_their_place(void **state)
{
    static const char schema[] =
        "{\"type\":\"object\",\"properties\":{"
        "\"q\":{\"type\":\"string\",\"minLength\":2,\"maxLength\":4},"
        "\"n\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":10},"
        "\"x\":{\"type\":[\"number\",\"null\"]},"
        "\"kind\":{\"enum\":[\"a\",1]},"
        "\"list\":{\"type\":\"array\",\"items\":{\"type\":\"boolean\"},\"minItems\":1,\"maxItems\":2},"
        "\"inner\":{\"type\":\"object\",\"required\":[\"id\"],\"additionalProperties\":false,"
        "\"properties\":{\"id\":{\"const\":7}}}},\"required\":[\"q\"]}";
    static const struct {
        const char *value;
        const char *why;
    } cases[] = {
        {"{\"q\":\"tea\"}", NULL},
        {"{\"q\":\"t\\u00e9\\u00e9a\",\"n\":10,\"x\":null,\"kind\":1.0,\"list\":[true]}", NULL},
        {"{\"q\":\"tea\",\"inner\":{\"id\":7.0},\"unknown\":[1]}", NULL},
        {"{}", "has no 'q'"},
        {"[]", "the arguments must be of the type"},
        {"{\"q\":1}", "/q must be of the type"},
        {"{\"q\":\"t\"}", "/q must have at least 2 characters"},
        {"{\"q\":\"teapot\"}", "/q must have at most 4 characters"},
        {"{\"q\":\"tea\",\"n\":1.5}", "/n must be of the type"},
        {"{\"q\":\"tea\",\"n\":0}", "/n must be at least 1"},
        {"{\"q\":\"tea\",\"n\":11}", "/n must be at most 10"},
        {"{\"q\":\"tea\",\"x\":\"1\"}", "/x must be of the type"},
        {"{\"q\":\"tea\",\"kind\":\"b\"}", "/kind must be one of"},
        {"{\"q\":\"tea\",\"list\":[]}", "/list must have at least 1 items"},
        {"{\"q\":\"tea\",\"list\":[true,1]}", "/list/1 must be of the type"},
        {"{\"q\":\"tea\",\"list\":[true,true,true]}", "/list must have at most 2 items"},
        {"{\"q\":\"tea\",\"inner\":{}}", "/inner has no 'id'"},
        {"{\"q\":\"tea\",\"inner\":{\"id\":8}}", "/inner/id must be 7"},
        {"{\"q\":\"tea\",\"inner\":{\"id\":7,\"more\":1}}", "/inner has 'more'"}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err err = {0};
        int rc = schema_validate(STR(schema), str_of(cases[i].value), &err);

        if (!cases[i].why)
            assert_int_equal(rc, 0);
        else if (rc == 0 || !strstr(err.text, cases[i].why))
            fail_msg("%s: %s", cases[i].value, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_is_kept_may_stand_in_a_schema),
        cmocka_unit_test(wrong_arguments_are_named_with_their_place)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
