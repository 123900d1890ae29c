/* Linked into programs of the coverage build only (tools/coverage.py): gcov writes its counters at
 * exit(), so a process that ends by _exit() or kills itself at a fault point would count for
 * nothing. The linker puts these in front of the two calls (--wrap). A process that is killed from
 * outside still loses what it had counted. */
#include <signal.h>

void __gcov_dump(void);
void __real__exit(int code) __attribute__((noreturn));
int __real_raise(int number);
void __wrap__exit(int code) __attribute__((noreturn));
int __wrap_raise(int number);

void __wrap__exit(int code)
{
    __gcov_dump();
    __real__exit(code);
}

int __wrap_raise(int number)
{
    if (number == SIGKILL)
        __gcov_dump();
    return __real_raise(number);
}
