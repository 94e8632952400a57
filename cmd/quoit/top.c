/* SPDX-License-Identifier: BSD-3-Clause */
/* quoit top - a running job, or a ring that stays, live. */
#include "top.h"
#include "base/log.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "command.h"
#include "env/clock.h"

#define STATUS_NO_JOB 1
#define STATUS_USAGE  2

struct settings {
    bool is_once;
    bool is_json;
    bool is_list;
    uint64_t interval_ns;
    uint64_t pid;     /* 0: the only job there is */
    const char *ring; /* NULL: a job */
};

static void print_help(void)
{
    printf(
        "usage: quoit top [OPTION]... [PID]\n\n"
        "Shows what each direction of each link of a running job carries, and where each PE is, once a second.\n"
        "PID is that of its oshrun; without it the only running job of this user is taken. A job over several\n"
        "machines is shown whole where oshrun was started, elsewhere the part of that machine. q or Ctrl-C ends it.\n"
        "\n"
        "  --ring [USER:]NAME       show a ring that stays: its links, jobs and Ethernet devices; root any user's\n"
        "  --once                   tell once, after one interval, and end\n"
        "  --json                   print one JSON object a line\n"
        "  --interval TIME          between two looks (default 1s)\n"
        "  --list                   list the running jobs, for root those of all users, and end\n"
        "  --help                   print this\n");
}

static int refuse(const char *text, const char *word)
{
    quoit_say("%s%s (see --help)", text, word);
    return STATUS_USAGE;
}

/* 0: go on; -1: the help was printed; else the status to end with. */
static int take_arguments(struct settings *settings, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            print_help();
            return -1;
        }
        if (strcmp(word, "--once") == 0)
            settings->is_once = true;
        else if (strcmp(word, "--json") == 0)
            settings->is_json = true;
        else if (strcmp(word, "--list") == 0)
            settings->is_list = true;
        else if (strcmp(word, "--ring") == 0) {
            if (i + 1 == argc)
                return refuse("--ring needs a name", "");
            settings->ring = argv[++i];
        } else if (strcmp(word, "--interval") == 0) {
            if (i + 1 == argc || !quoit_parse_duration(argv[++i], &settings->interval_ns) || !settings->interval_ns)
                return refuse("--interval needs a time, such as 500ms", "");
        } else if (word[0] == '-')
            return refuse("there is no option ", word);
        else if (settings->pid || !quoit_parse_uint(word, &settings->pid) || settings->pid - 1 >= INT32_MAX)
            return refuse("this is not one pid: ", word);
    }
    return 0;
}

/* The requested job, or the only one. 0, or the status to end with, which was explained. */
static int choose(const struct settings *settings, struct job_view *job_out)
{
    struct job_view *jobs;
    if (settings->pid) {
        if (job_open(job_out, (pid_t)settings->pid))
            return 0;
        quoit_say("%d is no oshrun of yours whose PEs have started", (int)settings->pid);
        return STATUS_NO_JOB;
    }
    uint32_t count = jobs_find(&jobs);
    int status = count == 1 ? 0 : count == 0 ? STATUS_NO_JOB : STATUS_USAGE;
    if (count == 1) {
        *job_out = jobs[0];
    } else if (count == 0) {
        quoit_say("no job of yours is running");
    } else {
        quoit_say("%u jobs are running; choose one: quoit top PID", count);
        top_print_list(jobs, count, false, stderr);
    }
    for (uint32_t i = 0; i < count && count > 1; i++)
        job_close(&jobs[i]);
    free(jobs);
    return status;
}

static int list(bool is_json)
{
    struct job_view *jobs;
    uint32_t count = jobs_find(&jobs);
    top_print_list(jobs, count, is_json, stdout);
    for (uint32_t i = 0; i < count; i++)
        job_close(&jobs[i]);
    free(jobs);
    return 0;
}

/* What is watched: a job, or a ring. */
struct subject {
    int pid_fd;                                       /* can be read when it has ended; -1: take() says so */
    enum top_taken (*take)(void *arg, uint32_t slot); /* one of two samples */
    /* After TOP_AWAITED: who does not answer. NULL: that was reported, and is to be repeated later, or on request. */
    const char *(*describe)(void *arg, bool is_repeated);
    void (*print)(void *arg, uint32_t before, uint32_t now, bool is_json, FILE *out);
    void *arg;
};

static void show(const struct settings *settings, const struct subject *subject, uint32_t before, uint32_t now)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out)
        return;
    subject->print(subject->arg, before, now, settings->is_json, out);
    fclose(out);
    if (settings->is_json) {
        fputs(text, stdout);
        fflush(stdout);
    } else {
        top_screen_show(text);
    }
    free(text);
}

/* In place of samples. What is not a terminal gets it at growing intervals, on standard error. */
static void show_awaited(const struct subject *subject, bool is_live)
{
    char text[RING_SILENCE_BYTES + 2];
    const char *described = subject->describe(subject->arg, is_live);
    if (!described)
        return;
    snprintf(text, sizeof text, "%s\n", described);
    if (is_live)
        top_screen_show(text);
    else
        quoit_say("%s", described);
}

static bool has_ended(const struct subject *subject)
{
    struct pollfd ended = {.fd = subject->pid_fd, .events = POLLIN};
    return poll(&ended, 1, 0) > 0;
}

/* Waits an interval; false if the user or the job ended it. */
static bool wait_interval(const struct settings *settings, const struct subject *subject)
{
    uint64_t end_ns = quoit_clock_now_ns() + settings->interval_ns;
    for (uint64_t now_ns = quoit_clock_now_ns(); now_ns < end_ns; now_ns = quoit_clock_now_ns())
        if (top_screen_wait(subject->pid_fd, end_ns - now_ns) == TOP_KEY_QUIT || has_ended(subject))
            return false;
    return true;
}

/* False if it ended before anything was printed. */
static bool watch(const struct settings *settings, const struct subject *subject)
{
    uint32_t now = 0, sample_count = 0;
    bool has_told = false;
    bool is_live = !settings->is_once && !settings->is_json;
    enum top_taken taken = subject->take(subject->arg, now);
    if (taken == TOP_ENDED)
        return false;
    top_screen_open(is_live);
    do {
        if (taken == TOP_AWAITED) {
            show_awaited(subject, is_live);
        } else {
            sample_count++;
            if (sample_count > 1 || is_live) /* live: a first output before the interval has passed */
                show(settings, subject, sample_count > 1 ? !now : now, now);
            has_told = sample_count > 1;
            now = !now;
        }
        if ((settings->is_once && has_told) || ferror(stdout) || !wait_interval(settings, subject))
            break;
        taken = subject->take(subject->arg, now);
    } while (taken != TOP_ENDED);
    top_screen_close();
    return has_told;
}

/* A job */

struct watched_job {
    struct job_view view;
    struct top_sample samples[2];
    bool has_ended;
};

static enum top_taken take_job(void *arg, uint32_t slot)
{
    struct watched_job *job = arg;
    job->has_ended = !top_sample_take(&job->samples[slot], &job->view);
    return job->has_ended ? TOP_ENDED : TOP_TAKEN;
}

static void print_job(void *arg, uint32_t before, uint32_t now, bool is_json, FILE *out)
{
    struct watched_job *job = arg;
    (is_json ? top_print_json : top_print_text)(&job->view, &job->samples[before], &job->samples[now], out);
}

static int watch_job(const struct settings *settings)
{
    struct watched_job job = {.samples = {{0}}};
    int status = choose(settings, &job.view);
    if (status)
        return status;
    const struct subject subject = {.pid_fd = job.view.pid_fd, .take = take_job, .print = print_job, .arg = &job};
    bool has_told = false;
    if (top_sample_open(&job.samples[0], &job.view) && top_sample_open(&job.samples[1], &job.view))
        has_told = watch(settings, &subject);
    if ((job.has_ended || has_ended(&subject)) && !(settings->is_once && has_told))
        quoit_say("job %d has ended", (int)job.view.pid);
    top_sample_close(&job.samples[0]);
    top_sample_close(&job.samples[1]);
    job_close(&job.view);
    return settings->is_once && !has_told ? STATUS_NO_JOB : 0;
}

/* A ring */

struct watched_ring {
    const char *name;
    struct top_ring_sample *samples; /* [2] */
    bool is_gone;
    struct ring_answerer by; /* of the last sample */
    uint64_t awaited_ns;     /* since when its keeper does not answer; 0: it does */
    uint64_t report_ns;      /* when to report that again */
    char text[RING_SILENCE_BYTES];
};

static enum top_taken take_ring(void *arg, uint32_t slot)
{
    struct watched_ring *ring = arg;
    uint64_t begin_ns = quoit_clock_now_ns();
    enum top_taken taken = top_ring_take(ring->name, &ring->samples[slot], &ring->by);
    ring->is_gone = taken == TOP_ENDED;
    if (taken != TOP_AWAITED)
        ring->awaited_ns = ring->report_ns = 0;
    else if (ring->awaited_ns == 0)
        ring->awaited_ns = begin_ns;
    return taken;
}

static const char *describe_keeper(void *arg, bool is_repeated)
{
    struct watched_ring *ring = arg;
    uint64_t now_ns = quoit_clock_now_ns();
    char who[256];
    if (now_ns < ring->report_ns && !is_repeated)
        return NULL;
    ring->report_ns = now_ns + 2 * (now_ns - ring->awaited_ns);
    ring->by.await.await.since_ns = ring->awaited_ns;
    snprintf(who, sizeof who, "the keeper of the ring \"%s\"", ring->name);
    ring_await_describe(&ring->by.await, who, ring->by.keeper, ring->text);
    return ring->text;
}

static void print_ring(void *arg, uint32_t before, uint32_t now, bool is_json, FILE *out)
{
    struct watched_ring *ring = arg;
    (is_json ? top_ring_print_json : top_ring_print_text)(&ring->samples[before], &ring->samples[now], out);
}

static int watch_ring(const struct settings *settings)
{
    struct watched_ring ring = {.name = settings->ring, .samples = calloc(2, sizeof *ring.samples)};
    const struct subject subject = {
        .pid_fd = -1, .take = take_ring, .describe = describe_keeper, .print = print_ring, .arg = &ring};
    bool has_told = ring.samples && watch(settings, &subject);
    if (ring.is_gone)
        quoit_say("there is no ring \"%s\" that you control%s (quoit ring list)", settings->ring,
                  has_told ? " any more" : "");
    free(ring.samples);
    return ring.is_gone || (settings->is_once && !has_told) ? STATUS_NO_JOB : 0;
}

int command_top(int argc, char **argv)
{
    struct settings settings = {.interval_ns = 1000000000};
    int status = take_arguments(&settings, argc, argv);
    if (status)
        return status < 0 ? 0 : status;
    if (settings.ring && (settings.pid || settings.is_list))
        return refuse("--ring shows all jobs of the ring; without ", settings.pid ? "a PID" : "--list");
    if (settings.is_list)
        return list(settings.is_json);
    return settings.ring ? watch_ring(&settings) : watch_job(&settings);
}
