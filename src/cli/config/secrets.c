/* See the header. The kernel shows the memory that arguments and variables came in: they move to
 * the heap, where getenv finds them as before (libpq reads its own), and the old place is wiped. */
#include "cli/config/secrets.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* What handlers get, what the loader wants, and the marks by which leftovers are found. */
static bool is_harmless(const char *variable)
{
    static const char *const names[] = {"PATH=", "HOME=", "USER=", "LOGNAME=", "SHELL=",
                                        "LANG=", "LC_", "TZ=", "TMPDIR=", "LD_",
                                        "PERDURA_TASK_ID=", "PERDURA_LEASE_TOKEN="};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(variable, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* A copy of the texts with a NULL behind them, in one piece; the program cannot run without. */
static char **copy_texts(char **texts, size_t count)
{
    size_t bytes = (count + 1) * sizeof *texts;
    char **copy;
    char *end;

    for (size_t i = 0; i < count; i++)
        bytes += strlen(texts[i]) + 1;
    copy = calloc(1, bytes);
    if (!copy)
        abort();
    end = (char *)(copy + count + 1);
    for (size_t i = 0; i < count; i++) {
        copy[i] = end;
        end = stpcpy(end, texts[i]) + 1;
    }
    return copy;
}

static void move_environment(void)
{
    char **old = environ;
    size_t count = 0;

    while (old && old[count])
        count++;
    environ = copy_texts(old, count);
    for (size_t i = 0; i < count; i++)
        if (!is_harmless(old[i]))
            explicit_bzero(old[i], strlen(old[i]));
}

/* Where a user or parameters follow, a password may: all behind the scheme is made stars. */
static void mask(char *argument)
{
    char *address = strstr(argument, "://");

    if (address && strpbrk(address, "@?"))
        memset(address + 3, '*', strlen(address + 3));
}

char **secrets_hide(int argc, char **argv)
{
    char **copy = copy_texts(argv, (size_t)argc);

    prctl(PR_SET_DUMPABLE, 0);
    move_environment();
    for (int i = 1; i < argc; i++)
        mask(argv[i]);
    return copy;
}
