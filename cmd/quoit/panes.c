/* SPDX-License-Identifier: BSD-3-Clause */
/* quoit panes - a debugger in a pane of tmux, one for each PE; the words before the debugger in oshrun --debugger.
 *
 * The debugger stays a descendant of its PE, as oshrun requires, and ends with it. Its terminal is the pane's own, with
 * nothing in between: the process that tmux starts there gives it up as its controlling terminal (--hold) and says so
 * by a signal; then the debugger, in a new session, takes it. That process stays until the PE has ended or the pane is
 * closed.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "boot/protocol.h"
#include "command.h"
#include "prefix.h"

#define LINE_BYTES   4096
#define ID_BYTES     32
#define TTY_BYTES    128
#define GIVEN_SIGNAL (SIGRTMIN + 5)
#define GIVEN_S      10

static const char help[] =
    "usage: oshrun --debugger \"PES:quoit panes COMMAND\" PROGRAM [ARGUMENT]...\n"
    "\n"
    "Runs COMMAND, such as gdb --args, in a pane of its own for each PE of the list, in a new window of the tmux\n"
    "around oshrun, on this machine. A pane closes when its debugger ends, and all when the job does.\n"
    "\n"
    "  --help                   print this\n"
    "\n"
    "  oshrun -n 4 --debugger \"all:quoit panes gdb --args\" ./a.out\n";

/* Which pane it is to be, and is. */
struct pane {
    const char *job; /* its boot socket, which no other job of the machine has */
    unsigned pe;
    char id[ID_BYTES];
    char tty[TTY_BYTES];
};

/* In the pane: PID is the process of the PE. */
static int hold(char **words)
{
    int pidfd = (int)syscall(SYS_pidfd_open, atoi(words[2]), 0);
    if (pidfd < 0)
        return 0;            /* it has ended */
    signal(SIGHUP, SIG_IGN); /* which a session gets that loses its terminal */
    signal(SIGINT, SIG_IGN);
    ioctl(STDIN_FILENO, TIOCNOTTY);
    kill(atoi(words[2]), GIVEN_SIGNAL);
    struct pollfd watched[] = {{.fd = pidfd, .events = POLLIN}, {.fd = STDIN_FILENO}};
    while (poll(watched, 2, -1) < 0 && errno == EINTR)
        ;
    return 0;
}

/* The first line that tmux prints goes to `line_out`, if it is not NULL. False: tmux has failed. */
static bool ask_tmux(char *const *words, FILE *output, char line_out[LINE_BYTES])
{
    bool is_good = prefix_run(words, NULL, output) == 0;
    rewind(output);
    if (line_out && !fgets(line_out, LINE_BYTES, output))
        line_out[0] = '\0';
    return is_good;
}

/* The pane of this job after which, or before the first of which, that of the PE is to be. False: there is none yet. */
static bool find_neighbour(const struct pane *pane, char id_out[ID_BYTES], bool *is_before_out)
{
    char *const words[] = {"tmux", "list-panes", "-a", "-F", "#{pane_id} #{pane_start_command}", NULL};
    char line[LINE_BYTES], marker[LINE_BYTES];
    unsigned found = 0;
    FILE *output = tmpfile();
    id_out[0] = '\0';
    if (!output)
        return false;
    snprintf(marker, sizeof marker, "panes --hold %s ", pane->job);
    ask_tmux(words, output, NULL);
    while (fgets(line, sizeof line, output)) {
        const char *at = strstr(line, marker);
        char id[ID_BYTES];
        unsigned pe;
        if (!at || sscanf(line, "%31s", id) != 1 || sscanf(at + strlen(marker), "%u", &pe) != 1)
            continue;
        bool is_before = pe > pane->pe;
        bool is_better = !id_out[0] || (is_before ? *is_before_out && pe < found : *is_before_out || pe > found);
        if (!is_better)
            continue;
        found = pe;
        *is_before_out = is_before;
        memcpy(id_out, id, sizeof id);
    }
    fclose(output);
    return id_out[0] != '\0';
}

/* What tmux would say, such as that a window has no room, is not for the job's output. */
static bool try_tmux(char *const *words, FILE *output, char line_out[LINE_BYTES])
{
    int kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3), nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (kept >= 0 && nothing >= 0)
        dup2(nothing, STDERR_FILENO);
    bool is_good = ask_tmux(words, output, line_out);
    if (kept >= 0)
        dup2(kept, STDERR_FILENO);
    close(kept);
    close(nothing);
    return is_good;
}

/* By split-window, or where that has no room by new-window. */
static bool open_pane(struct pane *pane, char *neighbour, bool is_before)
{
    char own[PATH_MAX], pe[16], pid[16], line[LINE_BYTES], job[LINE_BYTES], quiet[] = "-d";
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    own[length > 0 ? length : 0] = '\0';
    snprintf(job, sizeof job, "%s", pane->job);
    snprintf(pe, sizeof pe, "%u", pane->pe);
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    char *const split[] = {"tmux",
                           "split-window",
                           "-d",
                           "-t",
                           neighbour,
                           is_before ? "-b" : quiet,
                           "-P",
                           "-F",
                           "#{pane_id} #{pane_tty}",
                           own,
                           "panes",
                           "--hold",
                           job,
                           pe,
                           pid,
                           NULL};
    char *const window[] = {"tmux", "new-window", "-n",     "debug", "-P", "-F", "#{pane_id} #{pane_tty}",
                            own,    "panes",      "--hold", job,     pe,   pid,  NULL};
    FILE *output = tmpfile();
    bool is_open = output && (neighbour ? try_tmux(split, output, line) : ask_tmux(window, output, line)) &&
                   sscanf(line, "%31s %127s", pane->id, pane->tty) == 2;
    if (output)
        fclose(output);
    return is_open;
}

/* The PE's number above it, and room for the next one. */
static void arrange(struct pane *pane)
{
    char title[32];
    snprintf(title, sizeof title, "PE %u", pane->pe);
    char *const words[] = {"tmux",
                           "set-option",
                           "-w",
                           "-t",
                           pane->id,
                           "pane-border-status",
                           "top",
                           ";",
                           "set-option",
                           "-w",
                           "-t",
                           pane->id,
                           "pane-border-format",
                           " #{pane_title} ",
                           ";",
                           "select-pane",
                           "-t",
                           pane->id,
                           "-T",
                           title,
                           ";",
                           "select-layout",
                           "-t",
                           pane->id,
                           "tiled",
                           NULL};
    prefix_run(words, NULL, NULL);
}

/* Panes are in the order of the PEs, so one process at a time asks for its own. */
static bool make_pane(struct pane *pane, const char *socket_path)
{
    char folder[PATH_MAX], neighbour[ID_BYTES];
    bool is_before = false;
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(socket_path, '/') - socket_path), socket_path);
    int lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (lock >= 0)
        while (flock(lock, LOCK_EX) != 0 && errno == EINTR)
            ;
    bool has_neighbour = find_neighbour(pane, neighbour, &is_before);
    bool is_open = (has_neighbour && open_pane(pane, neighbour, is_before)) || open_pane(pane, NULL, false);
    if (is_open)
        arrange(pane);
    if (lock >= 0)
        close(lock);
    return is_open;
}

/* Until the pane's process has given it up: before that tmux may not have made it that process's own. */
static bool await_terminal(const sigset_t *given)
{
    const struct timespec limit = {.tv_sec = GIVEN_S};
    while (sigtimedwait(given, NULL, &limit) < 0)
        if (errno != EINTR)
            return false;
    return true;
}

/* The child, in a session of its own. False: errno. */
static bool take_terminal(const char *tty)
{
    int fd = setsid() < 0 ? -1 : open(tty, O_RDWR | O_NOCTTY | O_CLOEXEC);
    return fd >= 0 && ioctl(fd, TIOCSCTTY, 0) == 0 && dup2(fd, STDIN_FILENO) >= 0 && dup2(fd, STDOUT_FILENO) >= 0 &&
           dup2(fd, STDERR_FILENO) >= 0;
}

/* Ends as the debugger does. */
static int run_in(const struct pane *pane, char **words)
{
    int status = 0;
    pid_t own = getpid(), pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != own)
            _exit(1);
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        setenv("TMUX_PANE", pane->id, 1);
        if (take_terminal(pane->tty))
            execvp(words[0], words);
        quoit_say("PE %u: cannot run %s on %s: %s", pane->pe, words[0], pane->tty, strerror(errno));
        _exit(1);
    }
    if (pid < 0) {
        quoit_say("PE %u: %s", pane->pe, strerror(errno));
        return 1;
    }
    while (waitpid(pid, &status, 0) != pid)
        if (errno != EINTR)
            return 1;
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0}); /* its own core file is there already */
    signal(WTERMSIG(status), SIG_DFL);           /* a sanitizer has a handler */
    raise(WTERMSIG(status));
    return 128 + WTERMSIG(status);
}

int command_panes(int argc, char **argv)
{
    char path[PATH_MAX], socket_path[PATH_MAX];
    const char *pe = getenv(QUOIT_PE_VARIABLE), *job = getenv(QUOIT_BOOT_SOCKET_VARIABLE), *tmux = getenv("TMUX");
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(help, stdout);
        return 0;
    }
    if (argc == 5 && strcmp(argv[1], "--hold") == 0)
        return hold(argv + 2);
    if (argc < 2 || argv[1][0] == '-') {
        fputs(help, stderr);
        return 2;
    }
    if (!pe || !job || !job[0]) {
        quoit_say("this is no PE of oshrun: oshrun --debugger \"all:quoit panes %s\" ./a.out", argv[1]);
        return 2;
    }
    struct pane pane = {.job = job, .pe = (unsigned)strtoul(pe, NULL, 10)};
    sigset_t given;
    sigemptyset(&given);
    sigaddset(&given, GIVEN_SIGNAL);
    sigprocmask(SIG_BLOCK, &given, NULL);
    snprintf(socket_path, sizeof socket_path, "%.*s", tmux ? (int)strcspn(tmux, ",") : 0, tmux ? tmux : "");
    if (!prefix_search("tmux", path))
        quoit_say("PE %u: tmux is not installed here; without it: --debugger \"all:xterm -e ...\", or gdbserver",
                  pane.pe);
    else if (!strchr(argv[1], '/') && !prefix_search(argv[1], path))
        quoit_say("PE %u: %s is not installed here", pane.pe, argv[1]);
    else if (!strchr(socket_path, '/'))
        quoit_say("PE %u: there is no tmux around oshrun: type tmux, and the command in it", pane.pe);
    else if (access(socket_path, W_OK) != 0)
        quoit_say("PE %u: the tmux around oshrun is not on this machine, or has ended (%s)", pane.pe, socket_path);
    else if (!make_pane(&pane, socket_path) || !await_terminal(&given))
        quoit_say("PE %u: tmux makes no pane", pane.pe);
    else
        return run_in(&pane, argv + 1);
    return 1;
}
