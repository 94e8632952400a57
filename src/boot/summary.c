/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/summary.h"

#include <string.h>

#include "base/assert.h"

_Static_assert(sizeof(struct quoit_summary) % 8 == 0, "hosts follow it");
_Static_assert(sizeof(struct quoit_summary_host) % 8 == 0 && sizeof(struct quoit_summary_pe) % 8 == 0, "PEs follow");

size_t quoit_summary_bytes(const struct quoit_job_config *job)
{
    return sizeof(struct quoit_summary) + job->host_count * sizeof(struct quoit_summary_host) +
           job->pe_count * sizeof(struct quoit_summary_pe);
}

struct quoit_summary_host *quoit_summary_host(const struct quoit_job_config *job, struct quoit_summary *summary,
                                              uint32_t host)
{
    quoit_assert(host < job->host_count);
    return (struct quoit_summary_host *)(void *)(summary + 1) + host;
}

struct quoit_summary_pe *quoit_summary_pe(const struct quoit_job_config *job, struct quoit_summary *summary,
                                          uint32_t pe)
{
    quoit_assert(pe < job->pe_count);
    void *pes = (struct quoit_summary_host *)(void *)(summary + 1) + job->host_count;
    return (struct quoit_summary_pe *)pes + pe;
}

uint32_t quoit_summary_program(struct quoit_summary *summary, const char *path)
{
    uint32_t i = 0;
    if (!path || strlen(path) >= QUOIT_SUMMARY_PATH_BYTES)
        return QUOIT_SUMMARY_PROGRAMS_MAX;
    while (i < QUOIT_SUMMARY_PROGRAMS_MAX && summary->programs[i][0] && strcmp(summary->programs[i], path) != 0)
        i++;
    if (i < QUOIT_SUMMARY_PROGRAMS_MAX)
        strcpy(summary->programs[i], path);
    return i;
}

size_t quoit_summary_answer_bytes(const struct quoit_job_config *job, uint32_t host)
{
    return sizeof(struct quoit_summary_answer) +
           quoit_job_config_pes_of_host(job, host) * sizeof(struct quoit_pe_survey);
}

void quoit_summary_clean(struct quoit_pe_survey *pe)
{
    pe->call[sizeof pe->call - 1] = '\0';
    for (char *c = pe->call; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
    pe->is_waiting = pe->call[0] != '\0';
}

/* Whether a direction is that of this host and side; where there are no links it is all zero. */
static bool is_of(const struct quoit_direction *direction, const struct quoit_layout *layout, enum quoit_side side)
{
    if (!quoit_layout_has_links(layout))
        return true;
    uint32_t neighbour = quoit_layout_neighbour(layout, side);
    return direction->from == layout->host && direction->to == neighbour && direction->side == side &&
           direction->link == (side == QUOIT_RIGHT ? layout->host : neighbour);
}

bool quoit_summary_take(struct quoit_summary *summary, uint32_t host, uint64_t round, const void *answer, size_t bytes)
{
    const struct quoit_job_config *job = &summary->descriptor.job;
    const struct quoit_summary_answer *came = answer;
    struct quoit_layout layout;
    if (bytes != quoit_summary_answer_bytes(job, host) || came->round != round ||
        quoit_layout_make(job, host, &layout) != QUOIT_OK)
        return false;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        if (!is_of(&came->host.directions[side], &layout, side))
            return false;
    if (quoit_job_config_has_network(job) && came->host.network.host != host)
        return false;
    struct quoit_summary_host *record = quoit_summary_host(job, summary, host);
    record->survey = came->host;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) /* a byte of another machine may be no bool */
        record->survey.directions[side].is_up = *(const unsigned char *)&came->host.directions[side].is_up != 0;
    record->taken_ns = came->taken_ns;
    for (uint32_t i = 0; i < layout.local_count; i++) {
        struct quoit_pe_survey *pe = &quoit_summary_pe(job, summary, layout.first_pe + i)->survey;
        *pe = came->pes[i];
        quoit_summary_clean(pe);
    }
    atomic_store_explicit(&record->round, round, memory_order_release);
    return true;
}
