/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/machine.h"

struct quoit_machine quoit_machine_of(const struct quoit_job_config *job, uint32_t host, bool is_one_machine,
                                      uint32_t core_count)
{
    uint32_t host_count = is_one_machine ? job->host_count : 1;
    uint32_t pe_count = is_one_machine ? job->pe_count : quoit_job_config_pes_of_host(job, host);
    return quoit_machine_with(job, host_count, pe_count, core_count);
}

struct quoit_machine quoit_machine_with(const struct quoit_job_config *job, uint32_t host_count, uint32_t pe_count,
                                        uint32_t core_count)
{
    uint32_t lanes_a_host = job->lane_count + (job->ring_starts != 0);
    uint32_t lane_count = quoit_job_config_has_proxies(job) ? lanes_a_host * host_count : 0;
    return (struct quoit_machine){.policy = quoit_wait_policy_for(pe_count + lane_count, core_count),
                                  .pe_count = pe_count,
                                  .core_count = core_count};
}
