/* The program: one command line in, one exit code out. */
#include "cli/command.h"

int main(int argc, char **argv)
{
    return command_main(argc, argv, stdout, stderr);
}
