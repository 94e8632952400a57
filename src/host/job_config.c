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

bool quoit_job_config_add_host(struct quoit_job_config *job, uint32_t pe_count)
{
    struct quoit_host_row *row = job->rows;
    uint32_t left = QUOIT_HOST_ROWS_MAX;
    while (left > 0 && row->end_host != 0 && row->end_host != job->host_count)
        row++, left--;
    if (left > 0 && row->end_host != 0 && row->pes_a_host != pe_count)
        row++, left--;
    if (left == 0 || job->host_count == QUOIT_JOB_HOSTS_MAX)
        return false;
    *row = (struct quoit_host_row){.end_host = (uint16_t)++job->host_count, .pes_a_host = (uint16_t)pe_count};
    job->pe_count += pe_count;
    return true;
}

struct quoit_host_row_found quoit_job_config_row_of_host(const struct quoit_job_config *job, uint32_t host)
{
    struct quoit_host_row_found found = {.row = job->rows[0]};
    for (uint32_t i = 1; i < QUOIT_HOST_ROWS_MAX && host >= found.row.end_host; i++) {
        found.first_pe += (found.row.end_host - found.first_host) * found.row.pes_a_host;
        found.first_host = found.row.end_host;
        found.row = job->rows[i];
    }
    return found;
}

static uint32_t placed_host_of_pe(const struct quoit_job_config *job, uint32_t pe)
{
    uint32_t first_host = 0, first_pe = 0;
    for (uint32_t i = 0; i < QUOIT_HOST_ROWS_MAX && first_host < job->host_count; i++) {
        struct quoit_host_row row = job->rows[i];
        uint32_t end_pe = first_pe + (row.end_host - first_host) * row.pes_a_host;
        if (pe < end_pe)
            return first_host + (pe - first_pe) / row.pes_a_host;
        first_host = row.end_host;
        first_pe = end_pe;
    }
    return job->host_count - 1;
}

uint32_t quoit_job_config_host_of_pe(const struct quoit_job_config *job, uint32_t pe)
{
    uint32_t few = job->pe_count / job->host_count;
    uint32_t more_hosts = job->pe_count % job->host_count;
    uint32_t in_larger = more_hosts * (few + 1);
    if (quoit_job_config_is_placed(job))
        return placed_host_of_pe(job, pe);
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
    uint32_t host_count = 0, pe_count = 0, i = 0;
    for (; i < QUOIT_HOST_ROWS_MAX && host_count < job->host_count; i++) {
        const struct quoit_host_row *row = &job->rows[i];
        if (row->end_host <= host_count || row->pes_a_host > QUOIT_LOCAL_PES_MAX)
            return false;
        pe_count += (row->end_host - host_count) * row->pes_a_host;
        host_count = row->end_host;
    }
    return host_count == job->host_count && pe_count == job->pe_count;
}
