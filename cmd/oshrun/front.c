/* SPDX-License-Identifier: BSD-3-Clause */
#include "front.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "children.h"
#include "env/clock.h"
#include "stopping.h"

#define ANSWER_NS UINT64_C(2000000000) /* for quoit-job, before this process stops without an answer */

enum { SIGNALS, STOP, JOB, CONVERSATION, WATCHED_COUNT };

struct run {
    const struct front *front;
    struct pollfd watched[WATCHED_COUNT];
    struct stopping_front state;
    uint64_t late_ns;   /* when to stop without an answer; 0: none is awaited */
    uint64_t killed_ns; /* when quoit-guard is killed; 0: the conversation is open; UINT64_MAX: it was */
};

static bool is_pending(int number)
{
    sigset_t pending;
    return sigpending(&pending) == 0 && sigismember(&pending, number);
}

/* The kernel delivers the pending SIGTSTP and stops this process, unless SIGCONT has come first and discarded it: no
 * time passes between that decision and the stop. In an orphaned process group, which no shell continues, the kernel
 * ignores SIGTSTP, and so does this process: SIGSTOP in its place would discard a SIGCONT that has just come. */
static void stop_self(void)
{
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    sigprocmask(SIG_UNBLOCK, &stop, NULL);
    sigprocmask(SIG_BLOCK, &stop, NULL);
}

static void send_to_job(struct run *run, int number)
{
    const struct front_word word = {.number = number};
    (void)send(run->front->job_fd, &word, sizeof word, MSG_NOSIGNAL); /* if it has ended, quoit-guard ends, too */
}

static void take_event(struct run *run, enum stopping_front_event event)
{
    unsigned deeds = stopping_front_take(&run->state, event);
    run->late_ns = 0;
    if (deeds & STOPPING_SEND_STOP) {
        send_to_job(run, SIGTSTP);
        run->late_ns = quoit_clock_now_ns() + ANSWER_NS;
    }
    if (deeds & STOPPING_SEND_CONTINUE)
        send_to_job(run, SIGCONT);
    if (deeds & STOPPING_STOP_SELF)
        stop_self();
}

static void reap(const struct run *run)
{
    int status = 0;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (pid == run->front->child && run->killed_ns && WIFSIGNALED(status)) {
            children_sweep();
            _exit(128 + SIGKILL); /* nobody reads why */
        } else if (pid == run->front->child) {
            children_end_as(status);
        }
}

static void take_signals(struct run *run)
{
    struct signalfd_siginfo info;
    while (read(run->watched[SIGNALS].fd, &info, sizeof info) == (ssize_t)sizeof info)
        if (info.ssi_signo == SIGCHLD)
            reap(run);
        else if (info.ssi_signo != SIGCONT)
            send_to_job(run, (int)info.ssi_signo);
        else if (run->front->conversation_fd < 0)
            take_event(run, STOPPING_FRONT_CONT);
}

/* Its end may leave quoit-guard, which is to reap it, stopped. */
static void take_words(struct run *run)
{
    struct front_word word;
    for (;;) {
        ssize_t n = recv(run->front->job_fd, &word, sizeof word, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n != (ssize_t)sizeof word) {
            run->watched[JOB].fd = -1;
            kill(run->front->child, SIGCONT);
            return;
        }
        if (word.number == 0)
            take_event(run, STOPPING_FRONT_ANSWER);
        else if (stopping_front_heeds(&run->state, word.continue_count) && !is_pending(SIGCONT))
            raise(SIGTSTP); /* it stays pending, as if a shell had sent it */
    }
}

/* Milliseconds; -1: no limit is due. */
static int timeout_of(const struct run *run)
{
    uint64_t due_ns = run->late_ns ? run->late_ns : run->killed_ns, now_ns = quoit_clock_now_ns();
    if (due_ns == 0 || due_ns == UINT64_MAX)
        return -1;
    return due_ns > now_ns ? (int)((due_ns - now_ns + 999999) / 1000000) : 0;
}

static void open_watched(struct run *run)
{
    const struct front *front = run->front;
    sigset_t signals = *front->taken, stop;
    sigdelset(&signals, SIGTSTP);
    sigemptyset(&stop);
    if (sigismember(front->taken, SIGTSTP) && front->conversation_fd < 0)
        sigaddset(&stop, SIGTSTP); /* else it stays pending, without effect */
    run->watched[SIGNALS] = (struct pollfd){.fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK), .events = POLLIN};
    run->watched[STOP] = (struct pollfd){.fd = signalfd(-1, &stop, SFD_CLOEXEC), .events = POLLIN};
    run->watched[JOB] = (struct pollfd){.fd = front->job_fd, .events = POLLIN};
    run->watched[CONVERSATION] = (struct pollfd){.fd = front->conversation_fd, .events = POLLRDHUP};
}

void front_run(const struct front *front)
{
    struct run run = {.front = front};
    struct pollfd *watched = run.watched;
    open_watched(&run);
    for (;;) {
        watched[STOP].events = run.state.is_asking ? 0 : POLLIN;
        (void)poll(watched, WATCHED_COUNT, timeout_of(&run));
        if (watched[SIGNALS].revents)
            take_signals(&run);
        if (!run.state.is_asking && is_pending(SIGTSTP) && front->conversation_fd < 0)
            take_event(&run, STOPPING_FRONT_TSTP);
        if (watched[JOB].revents)
            take_words(&run);
        if (watched[CONVERSATION].revents) {
            watched[CONVERSATION].fd = -1;
            run.killed_ns = quoit_clock_now_ns() + FRONT_DROPPED_NS;
        }
        if (run.late_ns && quoit_clock_now_ns() >= run.late_ns)
            take_event(&run, STOPPING_FRONT_LATE);
        if (run.killed_ns && quoit_clock_now_ns() >= run.killed_ns) {
            run.killed_ns = UINT64_MAX;
            kill(front->child, SIGKILL);
        }
    }
}
