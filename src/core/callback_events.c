#include "core/callback_events.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"

static const char *const words[CALLBACK_EVENTS] = {
    [CALLBACK_STARTED] = "started",
    [CALLBACK_FAILED] = "failed",
    [CALLBACK_TIMEOUT] = "timeout",
    [CALLBACK_ENDED] = "ended",
};

const char *callback_event_word(enum callback_event event)
{
    return words[event];
}

static int refuse(struct err *err)
{
    return err_set_field(err, ERR_INVALID, "callback_events",
                         "\"callback_events\" must be an array of \"started\", \"failed\", "
                         "\"timeout\" and \"ended\", at least one of them");
}

static int read_word(struct str element, struct arena *arena, unsigned *set, struct err *err)
{
    struct str word = json_kind(element) == JSON_STRING ? json_string(element, arena) : STR_NONE;

    for (unsigned i = 0; i < CALLBACK_EVENTS; i++)
        if (word.data && str_is(word, words[i])) {
            *set |= 1u << i;
            return 0;
        }
    return refuse(err);
}

int callback_events_read(struct str value, struct arena *arena, struct str *events,
                         struct err *err)
{
    char text[64];
    struct json_iter iter;
    struct str element;
    unsigned set = 0;
    int len = 0;

    if (json_kind(value) != JSON_ARRAY)
        return refuse(err);
    json_begin(value, &iter);
    while (json_next_element(&iter, &element))
        TRY(read_word(element, arena, &set, err));
    if (!set)
        return refuse(err);
    for (unsigned i = 0; i < CALLBACK_EVENTS; i++)
        if (set & 1u << i)
            len += snprintf(text + len, sizeof text - (size_t)len, "%s\"%s\"", len ? "," : "[",
                            words[i]);
    snprintf(text + len, sizeof text - (size_t)len, "]");
    *events = arena_str(arena, str_of(text));
    return events->data ? 0 : err_no_memory(err);
}

bool callback_events_have(struct str events, enum callback_event event)
{
    char word[16];
    int len = snprintf(word, sizeof word, "\"%s\"", words[event]);

    if (!events.data)
        return event == CALLBACK_ENDED;
    return memmem(events.data, events.len, word, (size_t)len) != NULL;
}
