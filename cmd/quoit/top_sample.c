/* SPDX-License-Identifier: BSD-3-Clause */
#include "top.h"

#include <stdlib.h>

#include "env/clock.h"

bool top_sample_open(struct top_sample *sample, const struct job_view *job)
{
    uint32_t host_count = job->config.host_count;
    *sample = (struct top_sample){.pes = calloc(job->config.pe_count, sizeof *sample->pes)};
    bool has_network = quoit_job_config_has_network(&job->config);
    bool has_links = host_count > 1 && job->config.protocol != QUOIT_PROTOCOL_NETWORK;
    if (has_links)
        sample->directions = calloc((size_t)QUOIT_SIDE_COUNT * host_count, sizeof *sample->directions);
    if (has_network)
        sample->networks = calloc(host_count, sizeof *sample->networks);
    if (sample->pes && (sample->directions || !has_links) && (sample->networks || !has_network))
        return true;
    top_sample_close(sample);
    return false;
}

void top_sample_take(struct top_sample *sample, const struct job_view *job)
{
    sample->now_ns = quoit_clock_now_ns();
    for (uint32_t i = 0; i < job->config.host_count; i++) {
        const struct job_host *host = &job->hosts[i];
        for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT && quoit_layout_has_links(&host->layout); side++)
            quoit_survey_direction(&host->layout, host->front, side, sample->now_ns,
                                   &sample->directions[QUOIT_SIDE_COUNT * i + side]);
        if (sample->networks)
            quoit_survey_network(&host->layout, host->front, sample->now_ns, &sample->networks[i]);
        for (uint32_t local = 0; local < host->layout.local_count; local++)
            quoit_survey_pe(&host->layout, host->front, local, sample->now_ns,
                            &sample->pes[host->layout.first_pe + local]);
    }
}

void top_sample_close(struct top_sample *sample)
{
    free(sample->directions);
    free(sample->networks);
    free(sample->pes);
    *sample = (struct top_sample){0};
}
