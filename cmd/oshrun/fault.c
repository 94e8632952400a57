/* SPDX-License-Identifier: BSD-3-Clause */
#include "fault.h"
#include "job.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/prng.h"
#include "env/clock.h"
#include "hosts.h"

#define WORDS_MAX      10
#define WORD_BYTES_MAX 32
#define TOLD_FIRST     100        /* changes of links */
#define TOLD_EVERY_NS  100000000u /* after them */

/* Words in capitals stand for values: L a link, H a host, T a time, N a number. The first T is at_ns, the second
 * for_ns. */
static const struct form {
    enum fault_kind kind;
    const char *words[WORDS_MAX];
} forms[] = {
    {FAULT_LINK, {"link", "L", "down", "at", "T"}},
    {FAULT_LINK, {"link", "L", "down", "at", "T", "for", "T"}},
    {FAULT_HOST, {"host", "H", "dies", "at", "T"}},
    {FAULT_RANDOM, {"links", "random", "every", "T", "for", "T"}},
    {FAULT_RANDOM, {"links", "random", "every", "T", "for", "T", "seed", "N"}},
};
#define FORM_COUNT (sizeof forms / sizeof forms[0])

static const char *const meanings[][2] = {{"L", "two hosts, such as 2-3"},
                                          {"H", "the number of a host"},
                                          {"T", "a time, such as 500ms or 1s"},
                                          {"N", "a number"}};

static bool parse_host(const char *text, uint32_t *host_out)
{
    uint64_t number;
    if (!quoit_parse_uint(text, &number) || number > UINT32_MAX)
        return false;
    *host_out = (uint32_t)number;
    return true;
}

/* Takes one word as the form wants it. */
static bool take_word(const char *wanted, const char *word, struct fault *fault, uint32_t *time_count)
{
    char first[WORD_BYTES_MAX];
    switch (wanted[0]) {
    case 'L': {
        size_t length = strcspn(word, "-");
        if (word[length] != '-')
            return false;
        snprintf(first, sizeof first, "%.*s", (int)length, word);
        return parse_host(first, &fault->first) && parse_host(word + length + 1, &fault->second);
    }
    case 'H':
        return parse_host(word, &fault->first);
    case 'T':
        return quoit_parse_duration(word, (*time_count)++ == 0 ? &fault->at_ns : &fault->for_ns);
    case 'N':
        return quoit_parse_uint(word, &fault->seed);
    default:
        return strcmp(wanted, word) == 0;
    }
}

/* How many words fit the form; *fault_out is what they say. */
static uint32_t match(const struct form *form, char words[][WORD_BYTES_MAX], uint32_t word_count,
                      struct fault *fault_out)
{
    uint32_t count = 0, time_count = 0;
    *fault_out = (struct fault){.kind = form->kind, .seed = 1};
    while (count < word_count && form->words[count] &&
           take_word(form->words[count], words[count], fault_out, &time_count))
        count++;
    return count;
}

static const char *meaning_of(const char *wanted, char text[WORD_BYTES_MAX])
{
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        if (strcmp(meanings[i][0], wanted) == 0)
            return meanings[i][1];
    snprintf(text, WORD_BYTES_MAX, "\"%s\"", wanted);
    return text;
}

static uint32_t split(const char *text, char words[WORDS_MAX][WORD_BYTES_MAX])
{
    uint32_t count = 0;
    for (;;) {
        text += strspn(text, " \t");
        if (!*text || count == WORDS_MAX)
            return count;
        size_t length = strcspn(text, " \t");
        snprintf(words[count++], WORD_BYTES_MAX, "%.*s", (int)length, text);
        text += length;
    }
}

static bool has_for(const struct form *form)
{
    for (size_t i = 0; i < WORDS_MAX && form->words[i]; i++)
        if (strcmp(form->words[i], "for") == 0)
            return true;
    return false;
}

bool fault_parse(const char *text, struct fault *fault_out, char problem_out[FAULT_PROBLEM_BYTES])
{
    char words[WORDS_MAX][WORD_BYTES_MAX], wanted[WORD_BYTES_MAX];
    uint32_t word_count = split(text, words), best_count = 0;
    const struct form *best = NULL;
    size_t form_index = 0;
    for (size_t i = 0; i < FORM_COUNT; i++) {
        uint32_t count = match(&forms[i], words, word_count, fault_out);
        form_index = i;
        if (count == word_count && !forms[i].words[count])
            goto check_times;
        if (count > best_count) {
            best = &forms[i];
            best_count = count;
        }
    }
    if (!best)
        snprintf(problem_out, FAULT_PROBLEM_BYTES,
                 "--fault \"%s\": say \"link 2-3 down at 1s for 500ms\", \"host 2 dies at 1s\" or "
                 "\"links random every 200ms for 50ms seed 7\"",
                 text);
    else if (!best->words[best_count])
        snprintf(problem_out, FAULT_PROBLEM_BYTES, "--fault \"%s\": nothing may follow \"%s\", but \"%s\" does", text,
                 words[best_count - 1], words[best_count]);
    else
        snprintf(problem_out, FAULT_PROBLEM_BYTES, "--fault \"%s\": after \"%s\" comes %s%s%s%s", text,
                 words[best_count - 1], meaning_of(best->words[best_count], wanted),
                 best_count < word_count ? ", not \"" : "", best_count < word_count ? words[best_count] : "",
                 best_count < word_count ? "\"" : "");
    return false;

check_times:
    if (has_for(&forms[form_index]) && fault_out->for_ns == 0 && fault_out->kind == FAULT_LINK) {
        snprintf(problem_out, FAULT_PROBLEM_BYTES,
                 "--fault \"%s\": an outage must be longer than nothing; leave out \"for\" and it lasts for ever",
                 text);
        return false;
    }
    if (fault_out->kind != FAULT_RANDOM || (fault_out->for_ns && fault_out->for_ns < fault_out->at_ns))
        return true;
    snprintf(problem_out, FAULT_PROBLEM_BYTES,
             "--fault \"%s\": each outage must be longer than nothing and shorter than the time between two of them",
             text);
    return false;
}

bool fault_fit(struct fault *fault, uint32_t host_count, char problem_out[FAULT_PROBLEM_BYTES])
{
    if (host_count == 1) {
        snprintf(problem_out, FAULT_PROBLEM_BYTES, "--fault wants a ring of hosts: give --hosts 2 or more");
        return false;
    }
    if (fault->kind == FAULT_HOST && fault->first >= host_count) {
        snprintf(problem_out, FAULT_PROBLEM_BYTES, "--fault: host %u is not there, the job has %u hosts (0..%u)",
                 fault->first, host_count, host_count - 1);
        return false;
    }
    if (fault->kind != FAULT_LINK)
        return true;
    uint32_t a = fault->first, b = fault->second;
    bool is_there = a < host_count && b < host_count;
    if (is_there && (a + 1) % host_count == b)
        return true;
    if (is_there && (b + 1) % host_count == a) {
        fault->first = b;
        fault->second = a;
        return true;
    }
    snprintf(problem_out, FAULT_PROBLEM_BYTES,
             "--fault: there is no link %u-%u; the links of %u hosts are 0-1, 1-2 and so on up to %u-0", a, b,
             host_count, host_count - 1);
    return false;
}

/* Through the sink of standard error, whose reader may stall. The first changes are all told, then a few a second. */
static void say(struct job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct job *job, const char *format, ...)
{
    char text[256];
    struct fault_news *news = &job->fault_news;
    uint64_t now_ns = quoit_clock_now_ns();
    if (news->told_count >= TOLD_FIRST && now_ns - news->told_ns < TOLD_EVERY_NS) {
        news->untold_count++;
        return;
    }
    int used = snprintf(text, sizeof text, "oshrun: ");
    va_list args;
    va_start(args, format);
    used += vsnprintf(text + used, sizeof text - (size_t)used, format, args);
    va_end(args);
    if (news->untold_count)
        used += snprintf(text + used, sizeof text - (size_t)used, ", after %llu changes that are not told",
                         (unsigned long long)news->untold_count);
    used += snprintf(text + used, sizeof text - (size_t)used, "\n");
    output_say(&job->output, text, (size_t)used);
    news->untold_count = 0;
    news->told_count++;
    news->told_ns = now_ns;
}

/* The link of a host to the next, opened when it is first needed. */
static struct quoit_port *port_of(struct job *job, uint32_t link)
{
    struct host *host = &job->hosts[link];
    if (host->fault_port)
        return host->fault_port;
    struct quoit_port_endpoint end;
    const struct quoit_port_config config = {
        .driver = job->driver, .memory = {host->front, host->layout.channels}, .endpoint = &end};
    if (hosts_describe(job, link, QUOIT_RIGHT, &end) != QUOIT_OK ||
        quoit_port_open(&config, &host->fault_port) != QUOIT_OK)
        say(job, "--fault: cannot reach link %u-%u", link, hosts_neighbour(job, link, QUOIT_RIGHT));
    return host->fault_port;
}

static void set_link(struct job *job, uint32_t link, bool is_up)
{
    struct quoit_port *port = port_of(job, link);
    if (!port)
        return;
    if ((is_up ? quoit_port_mend(port) : quoit_port_cut(port)) != QUOIT_OK)
        say(job, "--fault: the driver %s cannot cut a link", job->driver->name);
    else
        say(job, "link %u-%u %s (--fault)", link, hosts_neighbour(job, link, QUOIT_RIGHT),
            is_up ? "is up again" : "goes down");
}

/* One change; sets when the next one is due. */
static void change(struct job *job, struct fault_run *run)
{
    const struct fault *fault = run->fault;
    uint64_t due_ns = run->next_ns;
    run->next_ns = UINT64_MAX;
    switch (fault->kind) {
    case FAULT_HOST:
        say(job, "host%u dies (--fault)", fault->first);
        if (job->hosts[fault->first].proxy_pid)
            kill(job->hosts[fault->first].proxy_pid, SIGKILL);
        return;
    case FAULT_LINK:
        set_link(job, fault->first, run->is_down);
        if (!run->is_down && fault->for_ns)
            run->next_ns = due_ns + fault->for_ns;
        break;
    case FAULT_RANDOM:
        if (!run->is_down) {
            struct quoit_prng prng = {.state = run->prng_state};
            run->link = (uint32_t)quoit_prng_choose(&prng, job->plan->host_count);
            run->prng_state = prng.state;
        }
        set_link(job, run->link, run->is_down);
        run->next_ns = due_ns + (run->is_down ? fault->at_ns - fault->for_ns : fault->for_ns);
        break;
    }
    run->is_down = !run->is_down;
}

static bool start_runs(struct job *job, uint64_t now_ns)
{
    const struct plan *plan = job->plan;
    job->faults = calloc(plan->fault_count, sizeof *job->faults);
    for (uint32_t i = 0; i < plan->fault_count && job->faults; i++)
        job->faults[i] = (struct fault_run){
            .fault = &plan->faults[i], .next_ns = now_ns + plan->faults[i].at_ns, .prng_state = plan->faults[i].seed};
    return job->faults != NULL;
}

uint64_t fault_step(struct job *job, uint64_t now_ns)
{
    uint64_t next_ns = UINT64_MAX;
    if (!job->plan->fault_count || !job->is_going || job->end.phase != ENDING_NOT || job->proxies_stop_ns)
        return UINT64_MAX;
    if (!job->faults && !start_runs(job, now_ns))
        return UINT64_MAX;
    for (uint32_t i = 0; i < job->plan->fault_count; i++) {
        struct fault_run *run = &job->faults[i];
        while (run->next_ns <= now_ns)
            change(job, run);
        if (run->next_ns < next_ns)
            next_ns = run->next_ns;
    }
    return next_ns;
}
