/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/job_config.h"

uint32_t quoit_job_config_host_of_pe(const struct quoit_job_config *job, uint32_t pe)
{
    uint32_t few = job->pe_count / job->host_count;
    uint32_t more_hosts = job->pe_count % job->host_count;
    uint32_t in_larger = more_hosts * (few + 1);
    if (pe < in_larger)
        return pe / (few + 1);
    return more_hosts + (pe - in_larger) / few;
}
