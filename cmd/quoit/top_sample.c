/* SPDX-License-Identifier: BSD-3-Clause */
#include "top.h"

#include <stdlib.h>

#include "env/clock.h"

bool top_sample_open(struct top_sample *sample, const struct job_view *job)
{
    *sample = (struct top_sample){.hosts = calloc(job->config.host_count, sizeof *sample->hosts),
                                  .pes = calloc(job->config.pe_count, sizeof *sample->pes)};
    if (sample->hosts && sample->pes)
        return true;
    top_sample_close(sample);
    return false;
}

static struct quoit_wait_desc_host host_of(void *arg, uint32_t pe)
{
    const struct job_view *job = arg;
    const struct job_host *host = &job->hosts[quoit_job_config_host_of_pe(&job->config, pe)];
    return (struct quoit_wait_desc_host){.layout = &host->layout, .front = host->front, .memory_fd = host->memory_fd};
}

/* From the memories of the hosts. */
static void take_here(struct top_sample *sample, struct job_view *job)
{
    const struct quoit_wait_desc_job view = {
        .pe_count = job->config.pe_count, .is_partial = job->is_part, .host_of = host_of, .arg = job};
    for (uint32_t i = 0; i < job->config.host_count; i++) {
        const struct job_host *from = &job->hosts[i];
        struct top_host *host = &sample->hosts[i];
        host->is_known = from->front != NULL;
        if (!host->is_known)
            continue;
        host->taken_ns = sample->now_ns;
        quoit_survey_host(&from->layout, from->front, sample->now_ns, &host->survey);
        quoit_survey_pes(&from->layout, from->front, &view, sample->now_ns, sample->pes + from->layout.first_pe);
    }
}

/* What oshrun has collected, as of that round; 0: it does not answer. */
static void take_summary(struct top_sample *sample, const struct job_view *job, uint64_t round)
{
    for (uint32_t i = 0; i < job->config.host_count; i++) {
        const struct quoit_summary_host *from = quoit_summary_host(&job->config, job->summary, i);
        const struct quoit_layout *layout = &job->hosts[i].layout;
        struct top_host *host = &sample->hosts[i];
        /* Pairs with quoit_summary_take. Another look may have begun a later round. */
        uint64_t last = atomic_load_explicit(&from->round, memory_order_acquire);
        host->is_known = round && last >= round;
        if (!host->is_known)
            continue;
        host->taken_ns = from->taken_ns;
        host->survey = from->survey;
        for (uint32_t local = 0; local < layout->local_count; local++) {
            struct quoit_pe_survey *pe = &sample->pes[layout->first_pe + local];
            *pe = quoit_summary_pe(&job->config, job->summary, layout->first_pe + local)->survey;
            quoit_summary_clean(pe);
        }
    }
}

bool top_sample_take(struct top_sample *sample, struct job_view *job)
{
    uint64_t round = 0;
    enum job_answer answer = job->summary ? job_ask(job, &round) : JOB_ANSWERED;
    if (answer == JOB_ENDED)
        return false;
    sample->now_ns = quoit_clock_now_ns();
    if (job->summary)
        take_summary(sample, job, answer == JOB_ANSWERED ? round : 0);
    else
        take_here(sample, job);
    return true;
}

void top_sample_close(struct top_sample *sample)
{
    free(sample->hosts);
    free(sample->pes);
    *sample = (struct top_sample){0};
}
