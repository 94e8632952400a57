/* SPDX-License-Identifier: BSD-3-Clause */
#include "top.h"

#include <stdlib.h>

#include "env/clock.h"

bool top_sample_open(struct top_sample *sample, const struct job_view *job)
{
    *sample = (struct top_sample){.pes = calloc(job->config.pe_count, sizeof *sample->pes)};
    if (job->config.host_count > 1)
        sample->directions = calloc((size_t)QUOIT_SIDE_COUNT * job->config.host_count, sizeof *sample->directions);
    if (sample->pes && (sample->directions || job->config.host_count == 1))
        return true;
    top_sample_close(sample);
    return false;
}

void top_sample_take(struct top_sample *sample, const struct job_view *job)
{
    sample->now_ns = quoit_clock_now_ns();
    for (uint32_t i = 0; i < job->config.host_count; i++) {
        const struct job_host *host = &job->hosts[i];
        for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT && sample->directions; side++)
            quoit_survey_direction(&host->layout, host->front, side, sample->now_ns,
                                   &sample->directions[QUOIT_SIDE_COUNT * i + side]);
        for (uint32_t local = 0; local < host->layout.local_count; local++)
            quoit_survey_pe(&host->layout, host->front, local, sample->now_ns,
                            &sample->pes[host->layout.first_pe + local]);
    }
}

void top_sample_close(struct top_sample *sample)
{
    free(sample->directions);
    free(sample->pes);
    *sample = (struct top_sample){0};
}
