/* SPDX-License-Identifier: BSD-3-Clause */
#include "top.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#define TAKE_OVER "\033[?1049h\033[?25l" /* another screen, no cursor */
#define GIVE_BACK "\033[?25h\033[?1049l"
#define HOME      "\033[H"
#define LINE_REST "\033[K"
#define BELOW     "\033[J"
#define BOLD      "\033[1m"
#define RED       "\033[31m"
#define PLAIN     "\033[0m"

static struct {
    bool is_terminal;
    bool has_colour;
    bool has_shown;
    int signal_fd;
    struct termios before;
} screen;

static void say(const char *text)
{
    for (size_t left = strlen(text); left;) {
        ssize_t n = write(STDOUT_FILENO, text, left);
        if (n < 0 && errno != EINTR)
            return;
        text += n > 0 ? n : 0;
        left -= n > 0 ? (size_t)n : 0;
    }
}

static void take_over(void)
{
    struct termios keys = screen.before;
    keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO); /* keys are read at once; Ctrl-C still is a signal */
    tcsetattr(STDIN_FILENO, TCSANOW, &keys);
    say(TAKE_OVER);
}

static void give_back(void)
{
    say(GIVE_BACK);
    tcsetattr(STDIN_FILENO, TCSANOW, &screen.before);
}

void top_screen_open(bool is_wanted)
{
    sigset_t set;
    const char *no_colour = getenv("NO_COLOR");
    screen.is_terminal =
        is_wanted && isatty(STDOUT_FILENO) && isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &screen.before) == 0;
    screen.has_colour = screen.is_terminal && !(no_colour && no_colour[0]);
    sigemptyset(&set);
    for (const int *number = (const int[]){SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH, 0}; *number;
         number++)
        sigaddset(&set, *number);
    sigprocmask(SIG_BLOCK, &set, NULL);
    screen.signal_fd = signalfd(-1, &set, SFD_CLOEXEC);
    if (screen.is_terminal)
        take_over();
}

void top_screen_close(void)
{
    if (screen.is_terminal)
        give_back();
    close(screen.signal_fd);
}

/* One line of the text, cut to the width, in its style. */
static void show_line(FILE *out, const char *line, size_t bytes, size_t columns)
{
    char mark = bytes && (*line == TOP_MARK_HEADING || *line == TOP_MARK_TROUBLE) ? *line : 0;
    const char *style = !screen.has_colour || !mark ? "" : mark == TOP_MARK_HEADING ? BOLD : RED;
    if (mark) {
        line++;
        bytes--;
    }
    fprintf(out, "%s%.*s%s", style, (int)(bytes < columns ? bytes : columns), line, *style ? PLAIN : "");
}

void top_screen_show(const char *text)
{
    char *made = NULL;
    size_t made_bytes = 0, columns = INT32_MAX, rows = SIZE_MAX;
    struct winsize size;
    FILE *out = open_memstream(&made, &made_bytes);
    if (!out)
        return;
    if (screen.is_terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row) {
        columns = size.ws_col;
        rows = size.ws_row;
    }
    fprintf(out, "%s", screen.is_terminal ? HOME : screen.has_shown ? "\n" : "");
    for (size_t row = 0; *text && row < rows; row++) {
        size_t bytes = strcspn(text, "\n");
        show_line(out, text, bytes, columns);
        text += bytes + (text[bytes] == '\n');
        /* On a terminal the last row must not end with a line feed, which would scroll. */
        fprintf(out, "%s%s", screen.is_terminal ? LINE_REST : "", row + 1 < rows ? "\n" : "");
    }
    fprintf(out, "%s", screen.is_terminal ? BELOW : "");
    fclose(out);
    say(made);
    free(made);
    screen.has_shown = true;
}

/* Ctrl-Z: the shell gets its terminal back until SIGCONT. */
static void pause_for_shell(void)
{
    if (screen.is_terminal)
        give_back();
    raise(SIGSTOP);
    if (screen.is_terminal)
        take_over();
}

static enum top_key take_signal(void)
{
    struct signalfd_siginfo info;
    if (read(screen.signal_fd, &info, sizeof info) != (ssize_t)sizeof info)
        return TOP_KEY_NONE;
    if (info.ssi_signo == SIGTSTP)
        pause_for_shell();
    else if (info.ssi_signo != SIGCONT && info.ssi_signo != SIGWINCH)
        return TOP_KEY_QUIT;
    return TOP_KEY_NONE;
}

enum top_key top_screen_wait(int pid_fd, uint64_t timeout_ns)
{
    char key;
    struct pollfd fds[] = {
        {.fd = screen.signal_fd, .events = POLLIN},
        {.fd = pid_fd, .events = POLLIN},
        {.fd = screen.is_terminal ? STDIN_FILENO : -1, .events = POLLIN},
    };
    int timeout_ms = timeout_ns > 1000000000ull * 86400 ? 86400000 : (int)((timeout_ns + 999999) / 1000000);
    if (poll(fds, 3, timeout_ms) <= 0)
        return TOP_KEY_NONE;
    if (fds[0].revents)
        return take_signal();
    if (fds[2].revents && (read(STDIN_FILENO, &key, 1) <= 0 || key == 'q' || key == 'Q'))
        return TOP_KEY_QUIT;
    return TOP_KEY_NONE;
}
