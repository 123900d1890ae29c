/* perdura-spawn: the program that starts handlers. Kept apart and small, so that it holds nothing
 * worth reading and is cheap to fork. Not for people: the server starts it. */
#include "worker/process/process_spawner.h"

int main(void)
{
    process_spawner_main();
}
