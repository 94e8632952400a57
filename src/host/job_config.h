/* SPDX-License-Identifier: BSD-3-Clause */
/* job_config.h - the configuration that all hosts of a job share: its size, queues and protocol.
 *
 * The launcher makes it once; hosts compare a digest of it before they exchange a frame.
 */
#ifndef QUOIT_HOST_JOB_CONFIG_H
#define QUOIT_HOST_JOB_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#define QUOIT_LANES_MAX 8
/* Outstanding requests of a host have tokens of 16 bits, and its messages need some of them (proxy/queue.c). */
#define QUOIT_LOCAL_PES_MAX 1023
/* Hosts of a job. Only so many are in one ring, too (ring/ring.h). */
#define QUOIT_JOB_HOSTS_MAX 1024
/* Rows of hosts with equal numbers of PEs, as a cluster has. */
#define QUOIT_HOST_ROWS_MAX 64

/* The protocol between hosts: our queues, that of the papers (docs/design/scratchpad-protocol.md), or an ordinary
 * network (docs/design/network.md). */
enum quoit_protocol { QUOIT_PROTOCOL_QUEUE, QUOIT_PROTOCOL_SCRATCHPAD, QUOIT_PROTOCOL_NETWORK, QUOIT_PROTOCOL_COUNT };
/* The world's barrier between hosts: the general algorithm, or the papers' start and end doorbells. */
enum quoit_barrier_kind { QUOIT_BARRIER_AUTO, QUOIT_BARRIER_PAPERS, QUOIT_BARRIER_KIND_COUNT };
/* How payload is moved in the protocol SCRATCHPAD. */
enum quoit_payload_kind { QUOIT_PAYLOAD_DMA, QUOIT_PAYLOAD_COPY, QUOIT_PAYLOAD_KIND_COUNT };
/* Which links PEs put through directly: those on which a loss leaves no put in parts, or all. */
enum quoit_direct_puts { QUOIT_DIRECT_PUTS_EXACT, QUOIT_DIRECT_PUTS_ALWAYS, QUOIT_DIRECT_PUTS_COUNT };

/* The payload size from which on DMA is used: in bytes, or one of these. */
#define QUOIT_DMA_MEASURED 0 /* each proxy measures it at start */
#define QUOIT_DMA_NEVER    UINT64_MAX

/* A row of hosts, from the end of the row before it to end_host - 1, with so many PEs each. */
struct quoit_host_row {
    uint16_t end_host;
    uint16_t pes_a_host;
};

/* Made by the launcher, the same on all hosts. */
struct quoit_job_config {
    uint32_t host_count;
    uint32_t pe_count;
    uint32_t lane_count;  /* per link: 1, 2, 4, 8. A network is one lane more */
    uint32_t slot_count;  /* per queue, >= QUOIT_RING_SLOTS_MIN */
    uint32_t chunk_bytes; /* payload of a slot; a multiple of 64 */
    uint32_t trace_count; /* events per ring of trace/trace.h; 0: no tracing */
    uint8_t protocol;     /* enum quoit_protocol */
    uint8_t barrier;      /* enum quoit_barrier_kind */
    uint8_t payload;      /* enum quoit_payload_kind */
    uint8_t direct_puts;  /* enum quoit_direct_puts */
    uint8_t has_loopback; /* 1: PEs of one host put and get through the network too, so a single host has one */
    uint8_t has_profile;  /* 1: PEs record where their time goes (trace/profile.h) */
    uint8_t unused[2];
    uint64_t data_bytes; /* globals and statics: the largest over all PEs, whole pages */
    uint64_t heap_bytes; /* the limit of each PE's symmetric heap, whole pages */
    /* Where hosts have numbers of PEs of their own (quoit_job_config_add_host()); all 0: equal blocks. A host without
     * PEs only relays. */
    struct quoit_host_row rows[QUOIT_HOST_ROWS_MAX];
    /* Several rings, joined by a network: bit h is set if host h is the first of a ring. 0: links join all hosts, or
     * none. */
    uint64_t ring_starts;
    /* Between the hosts of a network (host/schedules.h); 0: the built-in rules. Under other launchers than oshrun it is
     * 0 here, and the PEs agree on it at start. */
    uint64_t schedules;
};

/* Hosts first..first + count - 1. */
struct quoit_host_range {
    uint32_t first;
    uint32_t count;
};
/* The hosts that links join to this one, which is among them: a ring, on which the first host has position 0. A host
 * that only a network joins to others is alone in it. */
struct quoit_host_range quoit_job_config_ring_of(const struct quoit_job_config *job, uint32_t host);
/* Whether a proxy serves the PEs of each host. */
static inline bool quoit_job_config_has_proxies(const struct quoit_job_config *job)
{
    return job->host_count > 1 || job->has_loopback;
}
/* Whether a network joins some hosts, or all, or the PEs of the only one. */
static inline bool quoit_job_config_has_network(const struct quoit_job_config *job)
{
    return quoit_job_config_has_proxies(job) && (job->protocol == QUOIT_PROTOCOL_NETWORK || job->ring_starts != 0);
}
/* Whether a network is there for the loopback, if PEs use it. */
static inline bool quoit_job_config_has_sound_loopback(const struct quoit_job_config *job)
{
    return !job->has_loopback || quoit_job_config_has_network(job);
}
/* Whether ring_starts is 0, or makes several rings of these hosts. */
bool quoit_job_config_has_sound_rings(const struct quoit_job_config *job);

/* One host more, with a number of PEs of its own; job begins with neither hosts nor PEs. False: there are more than
 * QUOIT_JOB_HOSTS_MAX, or more rows of equal ones than QUOIT_HOST_ROWS_MAX. */
bool quoit_job_config_add_host(struct quoit_job_config *job, uint32_t pe_count);

/* PEs lie in blocks: of rows, or equal ones, of which the first pe_count % host_count have one more. */
static inline bool quoit_job_config_is_placed(const struct quoit_job_config *job)
{
    return job->rows[0].end_host != 0;
}
/* The row of a host, with its first host and PE. */
struct quoit_host_row_found {
    struct quoit_host_row row;
    uint32_t first_host;
    uint32_t first_pe;
};
struct quoit_host_row_found quoit_job_config_row_of_host(const struct quoit_job_config *job, uint32_t host);
static inline uint32_t quoit_job_config_first_pe(const struct quoit_job_config *job, uint32_t host)
{
    uint32_t more = job->pe_count % job->host_count;
    if (quoit_job_config_is_placed(job)) {
        struct quoit_host_row_found found = quoit_job_config_row_of_host(job, host);
        return found.first_pe + (host - found.first_host) * found.row.pes_a_host;
    }
    return host * (job->pe_count / job->host_count) + (host < more ? host : more);
}
static inline uint32_t quoit_job_config_pes_of_host(const struct quoit_job_config *job, uint32_t host)
{
    if (quoit_job_config_is_placed(job))
        return quoit_job_config_row_of_host(job, host).row.pes_a_host;
    return job->pe_count / job->host_count + (host < job->pe_count % job->host_count ? 1 : 0);
}
/* Of the host that has the most. */
uint32_t quoit_job_config_most_pes(const struct quoit_job_config *job);
/* Whether every PE has a host, no host has too many, and in equal blocks each has one. host_count is sound. */
bool quoit_job_config_has_sound_places(const struct quoit_job_config *job);
uint32_t quoit_job_config_host_of_pe(const struct quoit_job_config *job, uint32_t pe);

#endif
