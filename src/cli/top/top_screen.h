/* The terminal while `perdura top` has it: raw keys, the alternate screen, its size, signals. Every
 * way out restores it, also while the program is stopped. One thread. */
#ifndef CLI_TOP_TOP_SCREEN_H
#define CLI_TOP_TOP_SCREEN_H

#include "base/buf.h"
#include "base/err.h"

#include <signal.h>
#include <termios.h>

struct top_screen {
    int in_fd, out_fd;
    int signal_fd;
    bool taken;           /* raw, and the alternate screen is shown */
    bool stale;           /* what is on it was drawn for another size */
    struct termios before;
    sigset_t mask_before;
    uint32_t rows, columns;
};

enum top_event {
    TOP_EVENT_TIME,
    TOP_EVENT_KEYS,
    TOP_EVENT_ANSWER,
    TOP_EVENT_REDRAW,
    TOP_EVENT_END
};

/* Signals are blocked from here on and come as events. ERR_IO when it is no terminal. */
int top_screen_open(struct top_screen *screen, int in_fd, int out_fd, struct err *err);
void top_screen_close(struct top_screen *screen);

/* Waits for keys (their bytes, up to cap, in *len), a signal, something to read in answer_fd, or
 * the time. *signo: which one ended it, 0 = the terminal is gone. */
enum top_event top_screen_wait(struct top_screen *screen, int64_t wait_ms, int answer_fd,
                               char *bytes, size_t cap, size_t *len, int *signo);

/* A whole frame, lines ended by TOP_LINE_END: a line is cleared before it is written, because at
 * the right edge clearing takes the last character along. False when the terminal is gone. */
#define TOP_LINE_END "\r\n\033[K"
bool top_screen_show(struct top_screen *screen, struct str frame);

#endif
