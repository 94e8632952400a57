/* SPDX-License-Identifier: BSD-3-Clause */
#include "suspend.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "end.h"
#include "front.h"

/* The process group that reads the terminal for the job. */
static pid_t reader_of(const struct job *job)
{
    return job->role == ROLE_HEAD ? getpgrp() : job->pes[job->terminal.pe].pid;
}

static void stop_pes(struct job *job, bool spares_reader)
{
    job->terminal.is_wanted |= job->terminal.given_to != 0;
    terminal_take_back(&job->terminal);
    end_signal_all_but(job, spares_reader ? reader_of(job) : 0, SIGTSTP);
}

static void continue_pes(struct job *job)
{
    pid_t reader = reader_of(job);
    if (job->terminal.is_wanted && reader)
        terminal_give(&job->terminal, reader);
    end_signal_all(job, SIGCONT);
}

static void send_to_front(struct job *job, int number)
{
    const struct front_word word = {.number = number, .continue_count = job->continue_count};
    (void)send(job->front.fd, &word, sizeof word, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void suspend_take(struct job *job, enum stopping_event event)
{
    unsigned deeds = stopping_take(&job->stopping, event);
    loop_hold(&job->loop, job->stopping != STOPPING_RUNS);
    if (deeds & (STOPPING_STOP_PES | STOPPING_STOP_OTHERS))
        stop_pes(job, (deeds & STOPPING_STOP_OTHERS) != 0);
    if (deeds & STOPPING_CONTINUE_PES)
        continue_pes(job);
    if (deeds & STOPPING_ANSWER)
        send_to_front(job, 0);
    if (deeds & STOPPING_ASK_FRONT)
        send_to_front(job, SIGTSTP);
    if (deeds & STOPPING_CONTINUE_FRONT)
        guard_continue_front(&job->guard);
}

void suspend_continue(struct job *job)
{
    job->continue_count++;
    suspend_take(job, STOPPING_FRONT_CONTINUES);
}

void suspend_stopped(struct job *job, const struct pe *pe, int signal_number)
{
    struct terminal *terminal = &job->terminal;
    bool is_for_terminal = signal_number == SIGTTIN || signal_number == SIGTTOU;
    if (pe->index != terminal->pe || terminal->fd < 0)
        return;
    if (is_for_terminal && job->stopping == STOPPING_RUNS && terminal_give(terminal, pe->pid)) {
        kill(-pe->pid, SIGCONT);
    } else if (is_for_terminal || (signal_number == SIGTSTP && terminal->given_to)) {
        terminal->is_wanted = true;
        suspend_take(job, STOPPING_TERMINAL_STOPPED);
    }
}

void suspend_continued(struct job *job, const struct pe *pe)
{
    if (pe->index == job->terminal.pe)
        suspend_take(job, STOPPING_TERMINAL_CONTINUED);
}

void suspend_key(struct job *job)
{
    if (job->role == ROLE_HEAD && job->terminal.given_to)
        suspend_take(job, STOPPING_TERMINAL_STOPPED);
}

void suspend_step(struct job *job)
{
    if (job->end.phase == ENDING_NOT || job->has_gone_on)
        return;
    job->has_gone_on = true;
    suspend_take(job, STOPPING_JOB_ENDS);
}
