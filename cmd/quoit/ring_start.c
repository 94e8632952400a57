/* SPDX-License-Identifier: BSD-3-Clause */
/* The keeper of an emulated ring as a program of its own (boot/program.h). It and its hosts, which it forks, outlive
 * the command by days, so they have nothing of it: no descriptor, thread, preloaded library or signal mask. */
#include "ring.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/step.h"
#include "boot/program.h"
#include "env/clock.h"
#include "env/descriptors.h"

#define END_MS 2000

/* With the socket that has the ring's name. */
struct start {
    struct quoit_share_head head;
    struct ring_plan plan;
};

/* A keeper that starts, and the first process of it, which forks (quoit_program_leave_starter). */
struct starting {
    const char *name; /* of the ring */
    int fd;
    int signal_fd; /* -1: none */
    pid_t keeper;
    uint64_t word_count;
    struct ring_await await;
};

/* And waits for its end, which frees the ring's name. */
static void kill_keeper(const struct starting *starting)
{
    kill(starting->keeper, SIGKILL);
    for (uint32_t ms = 0; ms < END_MS && !quoit_process_has_ended(starting->keeper); ms++)
        quoit_clock_sleep_ns(1000000);
}

/* Of a user who does not want to wait any more: a keeper that is stopped would hold the ring's name. */
static bool take_signal(const struct starting *starting)
{
    struct signalfd_siginfo signal;
    if (read(starting->signal_fd, &signal, sizeof signal) != (ssize_t)sizeof signal)
        return false;
    kill_keeper(starting);
    raise((int)signal.ssi_signo); /* it is blocked */
    return true;
}

/* Until a word can be received. False: the keeper was killed, since it hangs, which was reported, or by a signal. */
static bool wait_for_word(struct starting *starting)
{
    struct pollfd polled[] = {{.fd = starting->fd, .events = POLLIN}, {.fd = starting->signal_fd, .events = POLLIN}};
    int wait_ms;
    do {
        char who[32 + RING_NAME_BYTES], text[RING_SILENCE_BYTES];
        enum quoit_await_verdict verdict =
            ring_await_look(&starting->await, starting->word_count + 1, starting->keeper, RING_HANG_NS, &wait_ms);
        snprintf(who, sizeof who, "the keeper of the ring \"%s\"", starting->name);
        if (verdict == QUOIT_AWAIT_REPORT) {
            ring_await_describe(&starting->await, who, starting->keeper, text);
            quoit_say("%s", text);
        } else if (verdict == QUOIT_AWAIT_HANGS) {
            quoit_say("%s (process %d) could run, but did nothing for %u s, and is killed [Q0603]", who,
                      (int)starting->keeper, (unsigned)(RING_HANG_NS / 1000000000u));
            kill_keeper(starting);
            return false;
        }
        if (poll(polled, 2, wait_ms) > 0 && polled[1].revents && take_signal(starting))
            return false;
    } while (!polled[0].revents);
    return true;
}

/* Whether the ring is up. */
static bool follow(struct starting *starting)
{
    struct ring_start_word word;
    struct quoit_ancillary nothing = {.fd_max = 0};
    for (;;) {
        if (!wait_for_word(starting))
            return false;
        if (quoit_receive_with_descriptors(starting->fd, &word, sizeof word, &nothing, 0) != (ssize_t)sizeof word) {
            quoit_say(
                "the keeper of the ring \"%s\" ended before the ring was up: somebody killed it, or the kernel did "
                "for want of memory (dmesg) [Q0603]",
                starting->name);
            return false;
        }
        starting->word_count++;
        if (word.kind == RING_IS_BORN)
            starting->keeper = word.pid;
        else if (word.kind != RING_GOES_ON)
            return word.kind == RING_IS_UP;
    }
}

/* But for those that the caller ignores, as nohup does. */
static void fill_end_signals(sigset_t *signals_out)
{
    static const int numbers[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    sigemptyset(signals_out);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct sigaction action;
        if (sigaction(numbers[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(signals_out, numbers[i]);
    }
}

bool ring_keeper_start(const struct ring_plan *plan, int name_fd)
{
    const struct start start = {.head = quoit_share_head_make(RING_MAGIC, sizeof start, RING_START), .plan = *plan};
    struct starting starting = {.name = plan->name};
    sigset_t signals, before;
    int error = quoit_program_spawn(NULL, RING_KEEPER_OPTION, &starting.fd, &starting.keeper);
    if (error != 0) {
        close(name_fd);
        quoit_say("cannot start the keeper of the ring \"%s\", quoit " RING_KEEPER_OPTION ": %s [Q0603]", plan->name,
                  strerror(error));
        return false;
    }
    (void)quoit_send_with_descriptors(starting.fd, &start, sizeof start, &name_fd, 1, 0); /* it may have ended */
    close(name_fd);
    fill_end_signals(&signals);
    sigprocmask(SIG_BLOCK, &signals, &before);
    starting.signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    bool is_up = follow(&starting);
    sigprocmask(SIG_SETMASK, &before, NULL); /* a signal that was taken ends this process */
    close(starting.signal_fd);
    close(starting.fd);
    return is_up;
}

/* To the command, from the process that forks: it can be named whatever happens to the keeper. */
static void publish(pid_t keeper)
{
    const struct ring_start_word word = {.kind = RING_IS_BORN, .pid = (int32_t)keeper};
    (void)send(QUOIT_PROGRAM_FD, &word, sizeof word, MSG_NOSIGNAL);
}

int ring_keeper_serve(void)
{
    struct start start;
    int name_fd = -1;
    struct quoit_ancillary came = {.fds = &name_fd, .fd_max = 1};
    if (!quoit_program_has_starter(RING_KEEPER_OPTION))
        return 2;
    quoit_step("keeper", QUOIT_STEP_ANY, "begin");
    if (!quoit_program_leave_starter(publish)) {
        const struct ring_start_word word = {.kind = RING_HAS_FAILED};
        quoit_say("cannot start the keeper of the ring: %s (ulimit -u, or a control group's pids) [Q0603]",
                  strerror(errno));
        (void)send(QUOIT_PROGRAM_FD, &word, sizeof word, MSG_NOSIGNAL);
        return 1;
    }
    quoit_step("keeper", QUOIT_STEP_ANY, "start");
    ssize_t bytes = quoit_receive_with_descriptors(QUOIT_PROGRAM_FD, &start, sizeof start, &came, 0);
    if (bytes < 0 || !quoit_share_head_matches(&start.head, (size_t)bytes, RING_MAGIC, sizeof start) ||
        came.fd_count != 1 || chdir("/") != 0)
        return 1;
    return ring_keeper_run(&start.plan, name_fd, QUOIT_PROGRAM_FD);
}
