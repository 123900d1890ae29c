/* libFuzzer: a callback URL and, behind a newline, the entries of the list of allowed ones, one per
 * line. The reading that decides is compared with that of libcurl, which makes the call: an allowed
 * URL must lead to a host that an entry names, over its scheme, and libcurl must agree on which. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <strings.h>

#include <curl/curl.h>

#include "base/err.h"
#include "core/callback_allow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ENTRIES_MAX 4

/* Scheme and host as libcurl reads them. false: libcurl would not call it at all. */
static bool curl_reads(struct str url, char **scheme, char **host)
{
    CURLU *parsed = curl_url();
    char *text = strndup(url.data, url.len);
    bool read;

    ASSERT(parsed && text);
    read = curl_url_set(parsed, CURLUPART_URL, text, 0) == CURLUE_OK &&
           curl_url_get(parsed, CURLUPART_SCHEME, scheme, 0) == CURLUE_OK &&
           curl_url_get(parsed, CURLUPART_HOST, host, 0) == CURLUE_OK;
    free(text);
    curl_url_cleanup(parsed);
    return read;
}

static bool same_place(struct str url, struct str entry)
{
    char *scheme[2] = {NULL, NULL};
    char *host[2] = {NULL, NULL};
    bool same = curl_reads(url, &scheme[0], &host[0]) && curl_reads(entry, &scheme[1], &host[1]) &&
                strcasecmp(scheme[0], scheme[1]) == 0 && strcasecmp(host[0], host[1]) == 0;

    for (int i = 0; i < 2; i++) {
        curl_free(scheme[i]);
        curl_free(host[i]);
    }
    return same;
}

static bool curl_agrees(struct str url, const struct str *entries, uint32_t count)
{
    char *scheme = NULL;
    char *host = NULL;
    bool would_call = curl_reads(url, &scheme, &host);
    bool agrees = !would_call; /* refused by libcurl: it goes nowhere */

    curl_free(scheme);
    curl_free(host);
    for (uint32_t i = 0; i < count && !agrees; i++)
        agrees = same_place(url, entries[i]);
    return agrees;
}

static struct str next_line(struct str *rest)
{
    const char *end = rest->len ? memchr(rest->data, '\n', rest->len) : NULL;
    struct str line = end ? str_span(rest->data, (size_t)(end - rest->data)) : *rest;

    *rest = end ? str_span(end + 1, rest->len - line.len - 1) : str_span("", 0);
    return line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct str loopback[] = {{"http://127.0.0.1", 16}, {"http://localhost", 16},
                                          {"http://[::1]", 12}};
    struct str rest = str_span((const char *)data, size);
    struct str url = next_line(&rest);
    struct str entries[ENTRIES_MAX];
    struct settings settings = {.callbacks.allow = entries};
    struct str origin = callback_origin(url);

    while (rest.len > 0 && settings.callbacks.allow_count < ENTRIES_MAX) {
        struct str entry = next_line(&rest);

        if (callback_entry_valid(entry))
            entries[settings.callbacks.allow_count++] = entry;
    }
    if (callback_allowed(&settings, url)) {
        bool listed = settings.callbacks.allow_count > 0;

        ASSERT(origin.data && str_starts(url, origin));
        ASSERT(curl_agrees(url, listed ? entries : loopback,
                           listed ? settings.callbacks.allow_count : 3));
    }
    if (origin.data)
        ASSERT(!memchr(origin.data, '@', origin.len) && !memchr(origin.data, '?', origin.len));
    return 0;
}
