/* SPDX-License-Identifier: BSD-3-Clause */
#include "top.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "boot/abstract.h"
#include "boot/summary.h"
#include "env/clock.h"
#include "env/map.h"
#include "hosts.h"

#define VIEWERS_MAX    8         /* processes that look at one job at once */
#define ROUND_APART_NS 50000000u /* however often they ask */

/* A quoit top. */
struct viewer {
    struct top *top;
    struct watch socket;
    uint64_t round; /* after which it gets a response; 0: it has not asked */
};

struct top {
    struct job *job;
    struct quoit_summary *summary; /* NULL: it could not be made */
    int memory_fd;                 /* in which quoit top finds it */
    struct watch listener;
    struct viewer viewers[VIEWERS_MAX];
    uint64_t round;       /* of the last question to the agents */
    uint64_t next_ns;     /* before which there is no other one */
    uint64_t deadline_ns; /* until which they may answer; 0: it is over */
    uint32_t missing_count;
};

static bool is_wanted(const struct top *top)
{
    for (int i = 0; i < VIEWERS_MAX; i++)
        if (top->viewers[i].socket.fd >= 0 && top->viewers[i].round > top->round)
            return true;
    return false;
}

static void begin_round(struct top *top, uint64_t now_ns)
{
    struct job *job = top->job;
    top->round++;
    top->next_ns = now_ns + ROUND_APART_NS;
    top->deadline_ns = now_ns + QUOIT_SUMMARY_ROUND_NS;
    top->missing_count = 0;
    for (uint32_t i = 0; i < job->plan->host_count; i++)
        top->missing_count += !job->hosts[i].is_gone;
    hosts_send_all(job, QUOIT_CONTROL_SURVEY, CONTROL_NO_PE, &top->round, sizeof top->round);
}

/* A viewer that has asked during the round waits for the next one. */
static void end_round(struct top *top)
{
    top->deadline_ns = 0;
    for (int i = 0; i < VIEWERS_MAX; i++) {
        struct viewer *viewer = &top->viewers[i];
        if (viewer->socket.fd < 0 || viewer->round == 0 || viewer->round > top->round)
            continue;
        viewer->round = 0;
        if (send(viewer->socket.fd, &top->round, sizeof top->round, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
            loop_close(&top->job->loop, &viewer->socket);
    }
}

/* A question, or the end of the viewer. One that asks before it has its response is no quoit top. */
static void viewer_asks(struct watch *watch, uint32_t events)
{
    (void)events;
    struct viewer *viewer = watch->owner;
    struct top *top = viewer->top;
    uint64_t question;
    ssize_t n = recv(watch->fd, &question, sizeof question, MSG_DONTWAIT | MSG_TRUNC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n != (ssize_t)sizeof question || question != QUOIT_SUMMARY_ASK || viewer->round) {
        loop_close(&top->job->loop, watch);
        return;
    }
    viewer->round = top->round + 1; /* which top_step begins */
}

static void viewer_comes(struct watch *watch, uint32_t events)
{
    (void)events;
    struct top *top = watch->owner;
    int place = 0, fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    while (place < VIEWERS_MAX && top->viewers[place].socket.fd >= 0)
        place++;
    if (place == VIEWERS_MAX || !quoit_abstract_is_admitted(fd)) {
        close(fd);
        return;
    }
    struct viewer *viewer = &top->viewers[place];
    *viewer =
        (struct viewer){.top = top, .socket = {.fd = fd, .events = EPOLLIN, .ready = viewer_asks, .owner = viewer}};
    if (!loop_add(&top->job->loop, &viewer->socket))
        loop_close(&top->job->loop, &viewer->socket);
}

static void fill(const struct job *job, struct quoit_summary *summary, const char *socket_name)
{
    struct quoit_job_descriptor descriptor;
    hosts_describe_job(job, &descriptor);
    const uint32_t magic = descriptor.magic;
    descriptor.magic = 0;
    summary->descriptor = descriptor;
    memcpy(summary->socket, socket_name, sizeof summary->socket);
    for (uint32_t i = 0; i < job->plan->host_count; i++)
        hosts_name(job, i, quoit_summary_host(&job->config, summary, i)->name);
    for (uint32_t i = 0; i < job->plan->pe_count; i++)
        quoit_summary_pe(&job->config, summary, i)->program = quoit_summary_program(summary, job->pes[i].executable);
    __atomic_store_n(&summary->descriptor.magic, magic, __ATOMIC_RELEASE); /* pairs with jobs.c of quoit */
}

/* False: there is no memory, or no descriptor for it. */
static bool make(struct top *top)
{
    struct job *job = top->job;
    char name[QUOIT_ABSTRACT_NAME_BYTES] = "";
    uint64_t chance[2];
    size_t bytes = quoit_summary_bytes(&job->config);
    if (getrandom(chance, sizeof chance, 0) != (ssize_t)sizeof chance)
        return false;
    snprintf(name, sizeof name, "quoit-top-%016llx%016llx", (unsigned long long)chance[0],
             (unsigned long long)chance[1]);
    if (quoit_abstract_listen(name, &top->listener.fd) != QUOIT_OK || !loop_add(&job->loop, &top->listener))
        return false;
    top->memory_fd = memfd_create(QUOIT_SUMMARY_NAME, MFD_CLOEXEC);
    if (top->memory_fd < 0 || ftruncate(top->memory_fd, (off_t)bytes) != 0)
        return false;
    struct quoit_summary *summary = quoit_map_file(top->memory_fd, bytes, PROT_READ | PROT_WRITE);
    if (!summary)
        return false;
    fill(job, summary, name);
    top->summary = summary;
    return true;
}

static void drop(struct top *top)
{
    struct job *job = top->job;
    loop_close(&job->loop, &top->listener);
    for (int i = 0; i < VIEWERS_MAX; i++)
        loop_close(&job->loop, &top->viewers[i].socket);
    if (top->summary)
        munmap(top->summary, quoit_summary_bytes(&job->config));
    if (top->memory_fd >= 0)
        close(top->memory_fd);
    top->summary = NULL;
    top->memory_fd = -1;
    top->deadline_ns = 0;
}

static void open_top(struct job *job)
{
    struct top *top = calloc(1, sizeof *top);
    if (!top)
        return;
    job->top = top;
    top->job = job;
    top->memory_fd = -1;
    top->listener = (struct watch){.fd = -1, .events = EPOLLIN, .ready = viewer_comes, .owner = top};
    for (int i = 0; i < VIEWERS_MAX; i++)
        top->viewers[i].socket.fd = -1;
    if (!make(top))
        drop(top); /* and it is not tried again */
}

uint64_t top_step(struct job *job, uint64_t now_ns)
{
    if (job->end.phase != ENDING_NOT)
        top_close(job);
    else if (job->has_layout && !job->top)
        open_top(job);
    struct top *top = job->top;
    if (!top)
        return UINT64_MAX;
    if (top->deadline_ns && now_ns >= top->deadline_ns)
        end_round(top);
    if (!top->deadline_ns && is_wanted(top)) {
        if (now_ns < top->next_ns)
            return top->next_ns;
        begin_round(top, now_ns);
    }
    return top->deadline_ns ? top->deadline_ns : UINT64_MAX;
}

void top_take(struct host *host, const void *answer, size_t bytes)
{
    struct top *top = host->job->top;
    if (!top || !top->deadline_ns)
        return;
    const struct quoit_summary_host *record = quoit_summary_host(&host->job->config, top->summary, host->index);
    if (atomic_load_explicit(&record->round, memory_order_relaxed) == top->round)
        return; /* it has answered */
    if (quoit_summary_take(top->summary, host->index, top->round, answer, bytes) && --top->missing_count == 0)
        end_round(top);
}

void top_answer(struct job *job, const void *round, size_t bytes)
{
    const struct host *host = &job->hosts[job->own_host];
    const struct quoit_wait_desc_job view = hosts_wait_desc_job(job);
    size_t answer_bytes = quoit_summary_answer_bytes(&job->config, host->index);
    struct quoit_summary_answer *answer = host->front && bytes == sizeof answer->round ? calloc(1, answer_bytes) : NULL;
    if (!answer)
        return;
    memcpy(&answer->round, round, sizeof answer->round);
    answer->taken_ns = quoit_clock_now_ns();
    quoit_survey_host(&host->layout, host->front, answer->taken_ns, &answer->host);
    quoit_survey_pes(&host->layout, host->front, &view, answer->taken_ns, answer->pes);
    control_send(&job->control, QUOIT_CONTROL_SURVEYED, host->index, answer, answer_bytes);
    free(answer);
}

void top_close(struct job *job)
{
    if (!job->top)
        return;
    drop(job->top);
    free(job->top);
    job->top = NULL;
}
