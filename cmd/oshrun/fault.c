/* SPDX-License-Identifier: BSD-3-Clause */
#include "fault.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "ring/route.h"

#define WORDS_MAX      10
#define WORD_BYTES_MAX 32

/* Words in capitals are placeholders: L a link, H a host, T a time, N a number. The first T is at_ns, the second
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

/* Parses one word as the form requires. */
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

/* The number of words that match the form; *fault_out is their meaning. */
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

/* Whether a link joins the right of one host to the left of the other. */
static bool has_link(const struct quoit_job_config *job, uint32_t from, uint32_t to)
{
    const struct quoit_host_range ring = quoit_job_config_ring_of(job, from);
    return ring.count > 1 && to == ring.first + quoit_ring_neighbour(ring.count, QUOIT_RIGHT, from - ring.first);
}

static bool has_links(const struct quoit_job_config *job)
{
    uint32_t host = 0;
    while (host < job->host_count && quoit_job_config_ring_of(job, host).count == 1)
        host++;
    return host < job->host_count;
}

bool fault_fit(struct fault *fault, const struct quoit_job_config *job, char problem_out[FAULT_PROBLEM_BYTES])
{
    uint32_t host_count = job->host_count;
    if (host_count == 1) {
        snprintf(problem_out, FAULT_PROBLEM_BYTES, "--fault wants a ring of hosts: give --hosts 2 or more");
        return false;
    }
    if (fault->kind == FAULT_HOST && fault->first >= host_count) {
        snprintf(problem_out, FAULT_PROBLEM_BYTES, "--fault: host %u is not there, the job has %u hosts (0..%u)",
                 fault->first, host_count, host_count - 1);
        return false;
    }
    if (fault->kind == FAULT_HOST)
        return true;
    if (fault->kind == FAULT_RANDOM && has_links(job))
        return true;
    uint32_t a = fault->first, b = fault->second;
    bool is_there = a < host_count && b < host_count;
    if (is_there && has_link(job, a, b))
        return true;
    if (is_there && has_link(job, b, a)) {
        fault->first = b;
        fault->second = a;
        return true;
    }
    if (job->ring_starts != 0)
        snprintf(problem_out, FAULT_PROBLEM_BYTES,
                 "--fault: there is no such link; with --rings links join the hosts of each ring alone");
    else
        snprintf(problem_out, FAULT_PROBLEM_BYTES,
                 "--fault: there is no link %u-%u; the links of %u hosts are 0-1, 1-2 and so on up to %u-0", a, b,
                 host_count, host_count - 1);
    return false;
}
