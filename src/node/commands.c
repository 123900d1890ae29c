/* See the header. The main thread, at the start. */
#include "node/commands.h"

#include "node/node.h"
#include "worker/process_spawner.h"

_Static_assert(sizeof NODE_SPAWN_NAME == sizeof SPAWNER_NAME, "one name for one program");

_Noreturn void node_spawn_main(void)
{
    process_spawner_main();
}

static bool has_command(const struct settings *settings)
{
    for (uint32_t i = 0; i < settings->handlers_count; i++)
        if (settings->handlers[i].command || settings->handlers[i].validate_command)
            return true;
    return false;
}

struct spawner *commands_open(const struct settings *settings, struct err *err)
{
    struct spawner *spawner = spawner_open(true, err);

    if (spawner && has_command(settings) && spawner_ready(spawner, err) < 0) {
        spawner_close(spawner);
        return NULL;
    }
    return spawner;
}
