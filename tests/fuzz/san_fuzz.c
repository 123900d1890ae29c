/* Whatever a CA has signed as names of a client: no certificate gets the rights of an entry whose
 * name it does not have, whole and of the same kind (D12). */
#include "core/access/outside.h"
#include "net/tls_sans.h"

#include <stdlib.h>
#include <strings.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct certificate_rule rules[] = {
    {.san = {"spiffe://a/b", 12}, .namespace_name = {"n", 1}, .scopes = SCOPE_BIT(SCOPE_WORK)},
    {.san = {"DNS:h.a", 7}, .namespace_name = {"*", 1}, .scopes = SCOPE_BIT(SCOPE_ADMIN)},
    {.san = {"w.a", 3}, .namespace_name = {"n", 1}, .scopes = SCOPE_BIT(SCOPE_TASKS_READ),
     .user = {"u", 1}},
};

static bool has(const struct str *sans, uint32_t count, const char *text)
{
    for (uint32_t i = 0; i < count; i++)
        if (sans[i].len == strlen(text) && memcmp(sans[i].data, text, 4) == 0 &&
            strncasecmp(sans[i].data + 4, text + 4, sans[i].len - 4) == 0)
            return true;
    return false;
}

static void check(const struct str *sans, uint32_t count)
{
    static const char *const wanted[] = {"URI:spiffe://a/b", "DNS:h.a", "DNS:w.a"};
    const struct access_settings access = {.certificates = rules,
                                           .certificates_count = sizeof rules / sizeof *rules};
    ARENA_AUTO struct arena arena = ARENA_INIT(0);
    const struct principal *principal = NULL;
    struct err err = {0};

    if (outside_certificate(&access, sans, count, &arena, &principal, &err) < 0) {
        ASSERT(err.code == ERR_FORBIDDEN && err.text[0]);
        for (uint32_t i = 1; i < sizeof wanted / sizeof *wanted; i++)
            ASSERT(!has(sans, count, wanted[i])); /* the case of a URI counts */
        return;
    }
    for (uint32_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (str_eq(principal->name, rules[i].san)) {
            ASSERT(has(sans, count, wanted[i]) && principal->scopes == rules[i].scopes);
            return;
        }
    abort();
}

/* As names of a certificate in DER. */
static void check_der(const uint8_t *data, size_t size)
{
    GENERAL_NAMES *names = d2i_GENERAL_NAMES(NULL, &data, (long)size);
    struct str *sans;
    uint32_t count;

    if (!names)
        return;
    sans = tls_sans_of(names, &count);
    ASSERT(count <= TLS_SANS_MAX);
    for (uint32_t i = 0; i < count; i++)
        for (size_t at = 0; at < sans[i].len; at++)
            ASSERT(sans[i].data[at] > ' ' && sans[i].data[at] < 127);
    check(sans, count);
    free(sans);
    GENERAL_NAMES_free(names);
}

/* As texts, a line each; and the first of them as the name of a rule. */
static void check_texts(struct str text)
{
    struct str sans[TLS_SANS_MAX] = {STR_NONE};
    uint32_t count = 0;

    while (text.len && count < TLS_SANS_MAX) {
        const char *end = memchr(text.data, '\n', text.len);
        size_t len = end ? (size_t)(end - text.data) : text.len;

        sans[count++] = str_span(text.data, len);
        len += end != NULL;
        text = str_span(text.data + len, text.len - len);
    }
    check(sans, count);
    if (count == 0 || !outside_san_valid(sans[0]))
        return;
    for (uint32_t i = 0; i < count; i++)
        if (outside_san_matches(sans[0], sans[i]))
            ASSERT(sans[i].len >= 5 && !memchr(sans[i].data, '*', sans[i].len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_der(data, size);
    check_texts(str_span((const char *)data, size));
    return 0;
}
