/* SPDX-License-Identifier: BSD-3-Clause */
/* survey.h - reads from outside, in the memories of a job's hosts, what each direction of each link carried and where
 * each PE is. For `oshrun --stats`, `quoit top` and `oshrun --trace`.
 *
 * The job keeps writing meanwhile: each number is whole, but two numbers may be of different instants. `front` is a
 * host's memory, of which only the part before the channels need be mapped; nothing is written.
 *
 * Threads: any. Errors: none.
 */
#ifndef QUOIT_BOOT_SURVEY_H
#define QUOIT_BOOT_SURVEY_H

#include <stdbool.h>
#include <stdio.h>

#include "boot/wait_desc.h"
#include "host/layout.h"

/* One direction of one link: what host `from` sent through the port of `side`. Link l joins host l, on its right, with
 * the next host. Sleep times are those of the service threads of `from`, which serve both of its sides. */
struct quoit_direction {
    uint32_t link;
    uint32_t from;
    uint32_t to;
    enum quoit_side side;
    bool is_up; /* as `from` sees it */
    uint64_t byte_count;
    uint64_t dma_count;    /* of these: bytes that went by DMA */
    uint64_t dma_bytes;    /* payload size from which on DMA is used; QUOIT_DMA_NEVER */
    uint64_t direct_bytes; /* size from which on a direct put goes through the proxy, to use its DMA */
    uint64_t message_count;
    uint64_t relay_count;
    uint64_t doorbell_count;
    uint64_t resend_count;
    uint64_t down_count;
    uint64_t sleep_count;
    uint64_t sleep_ns;
};

/* What one host sent and fetched over the network that joins it to the others. Sleep times are those of its service
 * thread. */
struct quoit_network_survey {
    uint32_t host;
    uint64_t put_count; /* from memory to memory; small ones travel in messages */
    uint64_t put_bytes;
    uint64_t get_count;
    uint64_t get_bytes;
    uint64_t pe_endpoint_count; /* of these puts and gets: by PEs themselves */
    uint64_t message_count;
    uint64_t message_bytes;
    uint64_t lost_count; /* hosts that it lost */
    uint64_t sleep_count;
    uint64_t sleep_ns;
};

struct quoit_pe_survey {
    uint32_t pid; /* 0: not, or no longer, in an OpenSHMEM job */
    bool is_waiting;
    char call[QUOIT_CALL_NAME_BYTES];         /* the routine in which it waits */
    uint64_t waiting_ns;                      /* and for how long */
    struct quoit_wait_desc_reading wait_desc; /* for what */
};

/* Of one host: what its links and its network carried. All zero where it has none. */
struct quoit_host_survey {
    struct quoit_direction directions[QUOIT_SIDE_COUNT];
    struct quoit_network_survey network;
};

/* _direction: the host has links; _network: the job has a network. */
void quoit_survey_direction(const struct quoit_layout *layout, const void *front, enum quoit_side side, uint64_t now_ns,
                            struct quoit_direction *direction_out);
void quoit_survey_network(const struct quoit_layout *layout, const void *front, uint64_t now_ns,
                          struct quoit_network_survey *network_out);
void quoit_survey_host(const struct quoit_layout *layout, const void *front, uint64_t now_ns,
                       struct quoit_host_survey *host_out);
/* Of all PEs of a host; `job` is where their wait descriptors are read. */
void quoit_survey_pes(const struct quoit_layout *layout, const void *front, const struct quoit_wait_desc_job *job,
                      uint64_t now_ns, struct quoit_pe_survey *pes_out);

/* Prints a direction, or a host's network, as members of a JSON object, without the braces. */
void quoit_survey_print_direction(const struct quoit_direction *direction, FILE *out);
void quoit_survey_print_network(const struct quoit_network_survey *network, FILE *out);

/* "1.5 MiB" */
const char *quoit_survey_format_bytes(double bytes, char text[32]);

#endif
