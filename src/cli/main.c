/* The program: one command line in, one exit code out. */
#include "cli/frame/command.h"
#include "cli/config/secrets.h"
#include "node/node.h"

#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    int code;

    if (argc > 0 && strcmp(argv[0], NODE_SPAWN_NAME) == 0)
        node_spawn_main();
    argv = secrets_hide(argc, argv);
    code = command_main(argc, argv, stdout, stderr);
    free(argv);
    return code;
}
