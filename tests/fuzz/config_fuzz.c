/* libFuzzer: any bytes as a configuration file. Accepted or refused with a sentence, never a crash,
 * a leak or more memory than the bounds allow; what is accepted can be shown. */
#include <stddef.h>
#include <stdint.h>

#include "cli/config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf shown = BUF_INIT(CONFIG_TEXT_BYTES_MAX + 64);
    struct config config;
    struct err err = {0};
    int rc;

    ASSERT(config_init_defaults(&config, &err) == 0);
    rc = config_parse(&config, str_span((const char *)data, size), "fuzz.yaml", &err);
    ASSERT(rc == 0 || (err.code != ERR_NONE && err.text[0] != '\0'));
    for (const struct config_field *field = config_root.fields; field->key && rc == 0; field++) {
        buf_reset(&shown);
        config_show(&config, field, &shown);
    }
    buf_deinit(&shown);
    config_deinit(&config);
    return 0;
}
