/* SPDX-License-Identifier: BSD-3-Clause */
#include "env/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXITING      0x4u /* PF_EXITING of the kernel, which shows its flags */
#define GENERATIONS  256
#define STAT_BYTES   512
#define STATUS_BYTES 4096

/* The text of a file of /proc/PID, truncated. False: there is none, and the text is "". */
static bool read_file(pid_t pid, const char *name, char *text_out, size_t capacity)
{
    char path[96];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd >= 0 ? read(fd, text_out, capacity - 1) : -1;
    if (fd >= 0)
        close(fd);
    text_out[bytes > 0 ? bytes : 0] = '\0';
    return bytes >= 0;
}

bool quoit_process_is_named(pid_t pid, const char *name)
{
    char text[STAT_BYTES];
    read_file(pid, "comm", text, sizeof text);
    size_t bytes = strcspn(text, "\n");
    return bytes == strlen(name) && strncmp(text, name, bytes) == 0;
}

bool quoit_process_look(pid_t pid, struct quoit_process *process_out)
{
    char text[STAT_BYTES], state = 0;
    int parent = 0;
    unsigned flags = 0;
    unsigned long long user = 0, system = 0;
    *process_out = (struct quoit_process){0};
    read_file(pid, "stat", text, sizeof text);
    const char *after_name = strrchr(text, ')'); /* the name may contain anything, including parentheses */
    if (!after_name || sscanf(after_name + 1, " %c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %llu %llu", &state, &parent,
                              &flags, &user, &system) != 5)
        return false;
    uint64_t tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
    *process_out = (struct quoit_process){.state = state,
                                          .is_exiting = (flags & EXITING) || state == 'Z' || state == 'X',
                                          .parent = parent,
                                          .busy_ns = (user + system) * tick_ns};
    return true;
}

/* Bit signal - 1 of each signal of a set of /proc/PID/status. False: it is not shown. */
static bool read_signals(const char *status, const char *set, uint64_t *signals_out)
{
    const char *at = strstr(status, set);
    unsigned long long signals = 0;
    bool is_shown = at && sscanf(at + strlen(set), "%llx", &signals) == 1;
    *signals_out = signals;
    return is_shown;
}

static DIR *open_threads(pid_t pid)
{
    char path[48];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    return opendir(path);
}

/* The number of the next thread, as /proc has it; NULL: that was the last. */
static const char *next_thread(DIR *threads)
{
    struct dirent *entry;
    do
        entry = readdir(threads);
    while (entry && entry->d_name[0] == '.');
    return entry ? entry->d_name : NULL;
}

bool quoit_process_sleeps(pid_t pid)
{
    char name[64], text[STAT_BYTES];
    DIR *threads = open_threads(pid);
    bool sleeps = threads != NULL;
    for (const char *thread; sleeps && (thread = next_thread(threads));) {
        snprintf(name, sizeof name, "task/%.20s/stat", thread);
        if (!read_file(pid, name, text, sizeof text)) /* it has just ended */
            continue;
        const char *after_name = strrchr(text, ')');
        sleeps = after_name && strncmp(after_name, ") S", 3) == 0;
    }
    if (threads)
        closedir(threads);
    return sleeps;
}

/* A futex that is private to the process and waited for without a limit: what no other process, signal or time ends. */
static bool waits_for_own_process(pid_t pid, const char *thread)
{
    char name[64], text[STAT_BYTES];
    long number = -1;
    unsigned long operation = 0, timeout = 0;
    snprintf(name, sizeof name, "task/%.20s/syscall", thread);
    if (!read_file(pid, name, text, sizeof text) ||
        sscanf(text, "%ld %*x %lx %*x %lx", &number, &operation, &timeout) != 3 || number != SYS_futex)
        return false;
    unsigned long command = operation & FUTEX_CMD_MASK;
    return (operation & FUTEX_PRIVATE_FLAG) && (command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET) && timeout == 0;
}

/* How often a thread has given up its processor: at least once if it waits. 0: it is not shown. */
static uint64_t switches_of(pid_t pid, const char *thread)
{
    static const char by_itself[] = "\nvoluntary_ctxt_switches:";
    char name[64], status[STATUS_BYTES];
    unsigned long long count = 0;
    snprintf(name, sizeof name, "task/%.20s/status", thread);
    const char *at = read_file(pid, name, status, sizeof status) ? strstr(status, by_itself) : NULL;
    return at && sscanf(at + strlen(by_itself), "%llu", &count) == 1 ? count : 0;
}

uint32_t quoit_process_independent_threads(pid_t pid, uint64_t *switches_out)
{
    uint32_t count = 0;
    *switches_out = 0;
    DIR *threads = open_threads(pid);
    if (!threads)
        return UINT32_MAX;
    for (const char *thread; (thread = next_thread(threads));) {
        uint64_t switches = waits_for_own_process(pid, thread) ? switches_of(pid, thread) : 0;
        *switches_out += switches;
        count += switches == 0;
    }
    closedir(threads);
    return count;
}

static uint64_t bit_of(int signal_number)
{
    return UINT64_C(1) << (signal_number - 1);
}

/* Signals that end no process, and that nobody sends a process which waits in the library to end it. */
static uint64_t waking_signals(void)
{
    static const int numbers[] = {SIGALRM, SIGVTALRM, SIGPROF, SIGUSR1, SIGUSR2, SIGIO, SIGCHLD, SIGHUP, SIGCONT};
    uint64_t signals = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        signals |= bit_of(numbers[i]);
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++) /* not those that libc has for itself */
        signals |= bit_of(number);
    return signals;
}

static bool has_children(pid_t pid)
{
    char name[40], text[STAT_BYTES];
    snprintf(name, sizeof name, "task/%d/children", (int)pid);
    return !read_file(pid, name, text, sizeof text) || text[0];
}

bool quoit_process_may_be_woken(pid_t pid)
{
    char status[STATUS_BYTES];
    uint64_t caught;
    read_file(pid, "status", status, sizeof status);
    return !read_signals(status, "\nSigCgt:", &caught) || (caught & waking_signals()) || has_children(pid);
}

bool quoit_process_handles(pid_t pid, int signal_number)
{
    static const char *const sets[] = {"\nSigBlk:", "\nSigIgn:", "\nSigCgt:"};
    char status[STATUS_BYTES];
    uint64_t signals;
    read_file(pid, "status", status, sizeof status);
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++)
        if (!read_signals(status, sets[i], &signals) || (signals & bit_of(signal_number)))
            return true;
    return false;
}

bool quoit_process_descends(pid_t pid, pid_t ancestor)
{
    struct quoit_process process;
    for (int i = 0; i < GENERATIONS && pid > 0 && pid != ancestor; i++) {
        if (!quoit_process_look(pid, &process))
            return false;
        pid = process.parent;
    }
    return pid > 0 && pid == ancestor;
}

int quoit_process_open(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

bool quoit_process_has_ended(pid_t pid)
{
    int fd = quoit_process_open(pid);
    if (fd < 0)
        return kill(pid, 0) != 0 && errno == ESRCH;
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    bool has_ended = poll(&poll_fd, 1, 0) > 0;
    close(fd);
    return has_ended;
}
