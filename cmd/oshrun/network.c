/* SPDX-License-Identifier: BSD-3-Clause */
#include "network.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "base/assert.h"
#include "base/log.h"
#include "env/clock.h"
#include "net/net.h"

#define LOOK_NS 200000 /* between two looks at who has come */

struct network_board {
    uint64_t tag;
    _Atomic uint32_t contact_count; /* hosts that have written their contact. release; pairs with acquire in gather */
    char contacts[][QUOIT_NETWORK_CONTACT_BYTES];
};

bool network_is_used(const struct job *job)
{
    return quoit_job_config_has_network(&job->config);
}

bool network_is_alone(const struct job *job)
{
    return network_is_used(job) && job->config.ring_starts == 0;
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

uint64_t network_tag(const struct job *job)
{
    return job->network->tag;
}

void network_take_tag(struct job *job, uint64_t tag)
{
    job->network->tag = tag;
}

/* "ring" stands for the hosts' links, where there are some. */
static const char *driver_of(const struct job *job)
{
    const char *driver = plan_text(job->plan, QUOIT_OPT_NETWORK);
    return strcmp(driver, "ring") == 0 ? "auto" : driver;
}

void network_load(const struct job *job)
{
    quoit_net_load(driver_of(job));
}

const void *network_contact(const struct job *job, uint32_t host)
{
    return job->network->contacts[host];
}

void network_take_contacts(struct job *job, const void *contacts)
{
    struct network_board *board = job->network;
    memcpy(board->contacts, contacts, (size_t)job->plan->host_count * QUOIT_NETWORK_CONTACT_BYTES);
    atomic_store_explicit(&board->contact_count, job->plan->host_count, memory_order_release);
}

bool network_add_contact(struct job *job, uint32_t host, const void *contact)
{
    struct network_board *board = job->network;
    memcpy(board->contacts[host], contact, QUOIT_NETWORK_CONTACT_BYTES);
    return atomic_fetch_add_explicit(&board->contact_count, 1, memory_order_relaxed) + 1 == job->plan->host_count;
}

/* Where the hosts are processes of this machine, the traffic stays in it without a word. */
void network_sit_down(const struct job *job, uint32_t host, struct network_seat *seat_out)
{
    const char *device = text_or_null(job, QUOIT_OPT_NETWORK_DEVICE);
    *seat_out = (struct network_seat){
        .board = job->network,
        .host = host,
        .host_count = job->plan->host_count,
        .timeout_ns = plan_number(job->plan, QUOIT_OPT_LINK_TIMEOUT),
        .config = {.driver = driver_of(job),
                   .provider = text_or_null(job, QUOIT_OPT_NETWORK_PROVIDER),
                   .device = device || job->role == ROLE_AGENT ? device : "lo",
                   .tag = job->network->tag,
                   .lost_limit_ns = plan_number(job->plan, QUOIT_OPT_LINK_LIMIT),
                   .start_limit_ns = plan_number(job->plan, QUOIT_OPT_LINK_TIMEOUT)},
    };
}

void network_offer(const struct network_seat *seat, const void *own, uint32_t bytes)
{
    struct network_board *board = seat->board;
    quoit_assert(bytes <= QUOIT_NETWORK_CONTACT_BYTES);
    memcpy(board->contacts[seat->host], own, bytes);
    atomic_fetch_add_explicit(&board->contact_count, 1, memory_order_release);
}

bool network_gather(const struct network_seat *seat, uint32_t bytes, void *all_out)
{
    struct network_board *board = seat->board;
    uint64_t deadline_ns = quoit_clock_now_ns() + seat->timeout_ns;
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
