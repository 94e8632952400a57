/* SPDX-License-Identifier: BSD-3-Clause */
#include "network.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "base/assert.h"
#include "base/log.h"
#include "env/clock.h"

#define LOOK_NS 200000 /* between two looks at who has come */

struct network_board {
    uint64_t tag;
    _Atomic uint32_t contact_count; /* hosts that have written their contact. release; pairs with acquire in exchange */
    char contacts[][QUOIT_NETWORK_CONTACT_BYTES];
};

bool network_is_used(const struct job *job)
{
    return job->plan->host_count > 1 && job->config.protocol == QUOIT_PROTOCOL_NETWORK;
}

bool network_open(struct job *job)
{
    size_t bytes = sizeof *job->network + (size_t)job->plan->host_count * QUOIT_NETWORK_CONTACT_BYTES;
    struct network_board *board = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED || getrandom(&board->tag, sizeof board->tag, 0) != (ssize_t)sizeof board->tag) {
        quoit_say("no memory for the addresses of the hosts [Q0215]");
        return false;
    }
    job->network = board;
    return true;
}

static const char *text_or_null(const struct job *job, enum quoit_option_id id)
{
    const char *text = plan_text(job->plan, id);
    return text[0] ? text : NULL;
}

/* The hosts are processes of this machine: without a word the traffic stays in it. */
void network_sit_down(const struct job *job, uint32_t host, struct network_seat *seat_out)
{
    const char *device = text_or_null(job, QUOIT_OPT_NETWORK_DEVICE);
    *seat_out = (struct network_seat){
        .board = job->network,
        .host = host,
        .host_count = job->plan->host_count,
        .timeout_ns = plan_number(job->plan, QUOIT_OPT_LINK_TIMEOUT),
        .config = {.driver = plan_text(job->plan, QUOIT_OPT_NETWORK),
                   .provider = text_or_null(job, QUOIT_OPT_NETWORK_PROVIDER),
                   .device = device ? device : "lo",
                   .tag = job->network->tag,
                   .lost_limit_ns = plan_number(job->plan, QUOIT_OPT_LINK_LIMIT)},
    };
}

bool network_exchange(const struct network_seat *seat, const void *own, uint32_t bytes, void *all_out)
{
    struct network_board *board = seat->board;
    uint64_t deadline_ns = quoit_clock_now_ns() + seat->timeout_ns;
    quoit_assert(bytes <= QUOIT_NETWORK_CONTACT_BYTES);
    memcpy(board->contacts[seat->host], own, bytes);
    atomic_fetch_add_explicit(&board->contact_count, 1, memory_order_release);
    while (atomic_load_explicit(&board->contact_count, memory_order_acquire) < seat->host_count) {
        if (quoit_clock_now_ns() >= deadline_ns) {
            quoit_say("not all hosts have joined the network within --link-timeout [Q0221]");
            return false;
        }
        quoit_clock_sleep_ns(LOOK_NS);
    }
    for (uint32_t host = 0; host < seat->host_count; host++)
        memcpy((char *)all_out + (size_t)host * bytes, board->contacts[host], bytes);
    return true;
}
