/* Hands a command's flags to the configuration. See store_call.h. One thread. */
#include "cli/config/store_call.h"

/* Not every command has every flag of the settings table; what it lacks is not set. */
static struct str flag_of_call(const void *ctx, const char *name)
{
    const struct call *call = ctx;

    for (uint32_t i = call->values_count; i > 0; i--)
        if (strcmp(call->values[i - 1].flag->name, name) == 0)
            return call->values[i - 1].text;
    return STR_NONE;
}

int store_call_config(struct call *call, struct config *config)
{
    struct str file = call_given_text(call, "config");
    struct config_inputs inputs = {
        .file = file.data, /* words of the command line end with NUL */
        .flag = flag_of_call,
        .flag_ctx = call,
        .environment = config_getenv,
    };

    /* --config=FILE is the tail of a word, so it ends with NUL as well. */
    return config_load(config, &inputs, &call->err);
}
