/* termios and a signalfd. A frame is drawn over the one before and not into an empty screen, so
 * that nothing flickers over a slow line. One thread. */
#include "cli/top/top_screen.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define FRAME_BYTES_MAX ((size_t)4 * 1024 * 1024)
#define ROWS_DEFAULT 24
#define COLUMNS_DEFAULT 80
#define SIZE_MAX_CELLS 1000
#define TAKE "\033[?1049h\033[?25l\033[2J"
#define GIVE_BACK "\033[0m\033[?25h\033[?1049l"

static bool write_all(int fd, struct str text)
{
    while (text.len > 0) {
        ssize_t sent = write(fd, text.data, text.len);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno == EAGAIN) {
            struct pollfd room = {.fd = fd, .events = POLLOUT};

            poll(&room, 1, 1000);
            continue;
        }
        if (sent < 0)
            return false;
        text = str_span(text.data + sent, text.len - (size_t)sent);
    }
    return true;
}

static void look_at_size(struct top_screen *screen)
{
    struct winsize size = {0};

    screen->rows = ROWS_DEFAULT;
    screen->columns = COLUMNS_DEFAULT;
    if (ioctl(screen->out_fd, TIOCGWINSZ, &size) < 0)
        return;
    if (size.ws_row > 0)
        screen->rows = size.ws_row < SIZE_MAX_CELLS ? size.ws_row : SIZE_MAX_CELLS;
    if (size.ws_col > 0)
        screen->columns = size.ws_col < SIZE_MAX_CELLS ? size.ws_col : SIZE_MAX_CELLS;
}

static void take(struct top_screen *screen)
{
    struct termios raw = screen->before;

    raw.c_iflag &= ~(tcflag_t)(ICRNL | INLCR | IXON | ISTRIP);
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN); /* ^C and ^Z stay what they are */
    raw.c_oflag &= ~(tcflag_t)OPOST;
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    tcsetattr(screen->in_fd, TCSADRAIN, &raw);
    write_all(screen->out_fd, STR(TAKE));
    screen->taken = true;
    look_at_size(screen);
}

static void give_back(struct top_screen *screen)
{
    if (!screen->taken)
        return;
    write_all(screen->out_fd, STR(GIVE_BACK));
    tcsetattr(screen->in_fd, TCSADRAIN, &screen->before);
    screen->taken = false;
}

static bool in_foreground(const struct top_screen *screen)
{
    pid_t group = tcgetpgrp(screen->in_fd);

    return group < 0 || group == getpgrp();
}

/* As a shell expects it: stopped with the terminal restored, and stopped again when it is continued
 * in the background. */
static void stop_here(struct top_screen *screen)
{
    give_back(screen);
    do
        kill(getpid(), SIGSTOP);
    while (!in_foreground(screen));
    take(screen);
}

int top_screen_open(struct top_screen *screen, int in_fd, int out_fd, struct err *err)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};
    sigset_t set;

    *screen = (struct top_screen){.in_fd = in_fd, .out_fd = out_fd, .signal_fd = -1};
    if (tcgetattr(in_fd, &screen->before) < 0)
        return err_set(err, ERR_IO, "this is not a terminal; --once prints one frame");
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        sigaddset(&set, signals[i]);
    screen->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (screen->signal_fd < 0)
        return err_set(err, ERR_IO, "signals cannot be read: %s", strerror(errno));
    sigaddset(&set, SIGTTOU); /* so that the terminal can be given back from the background */
    sigprocmask(SIG_BLOCK, &set, &screen->mask_before);
    take(screen);
    return 0;
}

void top_screen_close(struct top_screen *screen)
{
    if (screen->signal_fd < 0)
        return;
    give_back(screen);
    close(screen->signal_fd);
    screen->signal_fd = -1;
    sigprocmask(SIG_SETMASK, &screen->mask_before, NULL);
}

static enum top_event take_signal(struct top_screen *screen, int *signo)
{
    struct signalfd_siginfo info;

    if (read(screen->signal_fd, &info, sizeof info) != (ssize_t)sizeof info)
        return TOP_EVENT_TIME;
    switch ((int)info.ssi_signo) {
    case SIGWINCH:
        look_at_size(screen);
        screen->stale = true;
        return TOP_EVENT_REDRAW;
    case SIGTSTP:
        stop_here(screen);
        return TOP_EVENT_REDRAW;
    case SIGCONT: /* also after a stop that could not be caught: the shell had the terminal */
        if (!in_foreground(screen))
            stop_here(screen);
        else
            take(screen);
        return TOP_EVENT_REDRAW;
    default:
        *signo = (int)info.ssi_signo;
        return TOP_EVENT_END;
    }
}

enum top_event top_screen_wait(struct top_screen *screen, int64_t wait_ms, int answer_fd,
                               char *bytes, size_t cap, size_t *len, int *signo)
{
    struct pollfd fds[] = {{.fd = screen->signal_fd, .events = POLLIN},
                           {.fd = screen->in_fd, .events = POLLIN},
                           {.fd = answer_fd, .events = POLLIN}};
    ssize_t got;

    *len = 0;
    *signo = 0;
    if (poll(fds, 3, wait_ms < 0 ? 0 : (int)wait_ms) <= 0)
        return TOP_EVENT_TIME;
    if (fds[0].revents)
        return take_signal(screen, signo);
    if (!fds[1].revents)
        return TOP_EVENT_ANSWER;
    got = read(screen->in_fd, bytes, cap);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return TOP_EVENT_TIME;
    if (got <= 0)
        return TOP_EVENT_END;
    *len = (size_t)got;
    return TOP_EVENT_KEYS;
}

bool top_screen_show(struct top_screen *screen, struct str frame)
{
    BUF_AUTO struct buf text = BUF_INIT(FRAME_BYTES_MAX);

    buf_text(&text, screen->stale ? "\033[2J\033[H\033[K" : "\033[H\033[K");
    buf_str(&text, frame);
    screen->stale = false;
    return text.failed || write_all(screen->out_fd, buf_view(&text));
}
