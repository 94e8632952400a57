/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/job_config.h"

struct quoit_host_range quoit_job_config_ring_of(const struct quoit_job_config *job, uint32_t host)
{
    if (job->protocol == QUOIT_PROTOCOL_NETWORK)
        return (struct quoit_host_range){.first = host, .count = 1};
    if (job->ring_starts == 0)
        return (struct quoit_host_range){.first = 0, .count = job->host_count};
    uint64_t up_to_host = UINT64_MAX >> (63 - host);
    uint32_t first = 63 - (uint32_t)__builtin_clzll(job->ring_starts & up_to_host);
    uint64_t beyond = job->ring_starts & ~up_to_host;
    uint32_t end = beyond ? (uint32_t)__builtin_ctzll(beyond) : job->host_count;
    return (struct quoit_host_range){.first = first, .count = end - first};
}

bool quoit_job_config_has_sound_rings(const struct quoit_job_config *job)
{
    if (job->ring_starts == 0)
        return true;
    return job->protocol == QUOIT_PROTOCOL_QUEUE && job->barrier == QUOIT_BARRIER_AUTO && job->host_count <= 64 &&
           (job->ring_starts & 1) != 0 && __builtin_popcountll(job->ring_starts) > 1 &&
           job->ring_starts >> (job->host_count - 1) <= 1;
}

uint32_t quoit_job_config_host_of_pe(const struct quoit_job_config *job, uint32_t pe)
{
    uint32_t few = job->pe_count / job->host_count;
    uint32_t more_hosts = job->pe_count % job->host_count;
    uint32_t in_larger = more_hosts * (few + 1);
    if (quoit_job_config_is_placed(job)) {
        uint32_t host = 0;
        while (host + 1 < job->host_count && pe >= job->placed_ends[host])
            host++;
        return host;
    }
    if (pe < in_larger)
        return pe / (few + 1);
    return more_hosts + (pe - in_larger) / few;
}

uint32_t quoit_job_config_most_pes(const struct quoit_job_config *job)
{
    uint32_t most = 0;
    for (uint32_t host = 0; host < job->host_count; host++) {
        uint32_t count = quoit_job_config_pes_of_host(job, host);
        most = count > most ? count : most;
    }
    return most;
}

bool quoit_job_config_has_sound_places(const struct quoit_job_config *job)
{
    if (!quoit_job_config_is_placed(job))
        return job->pe_count >= job->host_count &&
               (job->pe_count + job->host_count - 1) / job->host_count <= QUOIT_LOCAL_PES_MAX;
    if (job->host_count > QUOIT_PLACED_HOSTS_MAX)
        return false;
    for (uint32_t host = 0; host < job->host_count; host++) {
        uint32_t first = quoit_job_config_first_pe(job, host);
        if (job->placed_ends[host] < first || job->placed_ends[host] - first > QUOIT_LOCAL_PES_MAX)
            return false;
    }
    return job->placed_ends[job->host_count - 1] == job->pe_count;
}
