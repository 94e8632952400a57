/* SPDX-License-Identifier: BSD-3-Clause */
/* quoit top - the ring of a running job, live. */
#include "top.h"

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
    uint64_t pid; /* 0: the only job there is */
};

static void print_help(void)
{
    printf("usage: quoit top [OPTION]... [PID]\n\n"
           "Shows what each direction of each link of a running job carries, and where each PE is, once a second.\n"
           "PID is that of its oshrun; without it the only running job of this user is taken. q or Ctrl-C ends it.\n\n"
           "  --once                   tell once, after one interval, and end\n"
           "  --json                   print one JSON object a line\n"
           "  --interval TIME          between two looks (default 1s)\n"
           "  --list                   list the running jobs and end\n"
           "  --help                   print this\n");
}

static int refuse(const char *text, const char *word)
{
    fprintf(stderr, "quoit top: %s%s (see --help)\n", text, word);
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
        else if (strcmp(word, "--interval") == 0) {
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
        fprintf(stderr, "quoit top: %d is no oshrun of yours whose PEs have started\n", (int)settings->pid);
        return STATUS_NO_JOB;
    }
    uint32_t count = jobs_find(&jobs);
    int status = count == 1 ? 0 : count == 0 ? STATUS_NO_JOB : STATUS_USAGE;
    if (count == 1) {
        *job_out = jobs[0];
    } else if (count == 0) {
        fprintf(stderr, "quoit top: no job of yours is running\n");
    } else {
        fprintf(stderr, "quoit top: %u jobs are running; choose one: quoit top PID\n", count);
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

static void show(const struct settings *settings, const struct job_view *job, const struct top_sample *before,
                 const struct top_sample *now)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out)
        return;
    if (settings->is_json)
        top_print_json(job, before, now, out);
    else
        top_print_text(job, before, now, out);
    fclose(out);
    if (settings->is_json) {
        fputs(text, stdout);
        fflush(stdout);
    } else {
        top_screen_show(text);
    }
    free(text);
}

/* Waits an interval; false if the user or the job ended it. */
static bool wait_interval(const struct settings *settings, const struct job_view *job)
{
    uint64_t end_ns = quoit_clock_now_ns() + settings->interval_ns;
    for (uint64_t now_ns = quoit_clock_now_ns(); now_ns < end_ns; now_ns = quoit_clock_now_ns())
        if (top_screen_wait(job->pid_fd, end_ns - now_ns) == TOP_KEY_QUIT || job_has_ended(job))
            return false;
    return true;
}

/* False if the job ended before anything was printed. */
static bool watch(const struct settings *settings, const struct job_view *job, struct top_sample samples[2])
{
    uint32_t now = 0;
    bool has_told = false;
    bool is_live = !settings->is_once && !settings->is_json;
    top_screen_open(is_live);
    top_sample_take(&samples[0], job);
    if (is_live)
        show(settings, job, &samples[0], &samples[0]); /* a first output before the interval has passed */
    while (wait_interval(settings, job)) {
        now = !now;
        top_sample_take(&samples[now], job);
        show(settings, job, &samples[!now], &samples[now]);
        has_told = true;
        if (settings->is_once || ferror(stdout))
            break;
    }
    top_screen_close();
    return has_told;
}

int command_top(int argc, char **argv)
{
    struct settings settings = {.interval_ns = 1000000000};
    struct job_view job;
    int status = take_arguments(&settings, argc, argv);
    if (status)
        return status < 0 ? 0 : status;
    if (settings.is_list)
        return list(settings.is_json);
    status = choose(&settings, &job);
    if (status)
        return status;
    struct top_sample samples[2] = {{0}};
    bool has_told = false;
    if (top_sample_open(&samples[0], &job) && top_sample_open(&samples[1], &job))
        has_told = watch(&settings, &job, samples);
    if (job_has_ended(&job) && !(settings.is_once && has_told))
        fprintf(stderr, "quoit top: job %d has ended\n", (int)job.pid);
    top_sample_close(&samples[0]);
    top_sample_close(&samples[1]);
    job_close(&job);
    return settings.is_once && !has_told ? STATUS_NO_JOB : 0;
}
