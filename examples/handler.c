/* A process handler in C: no library needed, only lines of JSON.
 *     cc handler.c -o handler && perdura serve --config perdura.yaml
 *     perdura enqueue example:c --wait
 * Kill it in the middle: the next attempt continues after the last checkpoint. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define STEPS 5

int main(void)
{
    const char *checkpoint = getenv("PERDURA_CHECKPOINT"); /* "step-2", empty if there is none */
    FILE *control = fdopen(3, "w");
    int byte, done = 0;
    size_t bytes = 0;

    while ((byte = getchar()) != EOF && byte != '\n') /* the task as one line of JSON */
        bytes++;
    if (!control) {
        fprintf(stderr, "descriptor 3 is not open; start this as a handler\n");
        return 1;
    }
    setvbuf(control, NULL, _IOLBF, 0); /* every line is sent when it is complete */
    if (checkpoint)
        sscanf(checkpoint, "step-%d", &done);
    printf("task %s has %zu bytes, %d steps are done\n", getenv("PERDURA_TASK_ID"), bytes, done);
    while (done < STEPS) {
        usleep(200000); /* the work */
        done++;
        fprintf(control, "{\"progress\":%d,\"state\":\"Step %d\"}\n", done * 100 / STEPS, done);
        fprintf(control, "{\"checkpoint\":{\"name\":\"step-%d\",\"progress\":%d,\"data\":%d}}\n",
                done, done * 100 / STEPS, done);
    }
    fprintf(control, "{\"result\":{\"steps\":%d}}\n", done);
    return fclose(control) != 0;
}
