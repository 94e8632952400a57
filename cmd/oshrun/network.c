/* SPDX-License-Identifier: BSD-3-Clause */
#include "network.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/log.h"
#include "env/clock.h"

struct network_board {
    uint64_t tag;
    int fd;                 /* of the contacts, which the proxies of this machine map */
    uint32_t contact_count; /* hosts whose contact stands there */
    char (*contacts)[QUOIT_NETWORK_CONTACT_BYTES];
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
    struct network_board *board = calloc(1, sizeof *board);
    size_t bytes = quoit_proxy_board_bytes(job->plan->host_count);
    void *contacts = MAP_FAILED;
    if (board && (board->fd = memfd_create("quoit-board", MFD_CLOEXEC)) >= 0 && ftruncate(board->fd, (off_t)bytes) == 0)
        contacts = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, board->fd, 0);
    if (contacts == MAP_FAILED || getrandom(&board->tag, sizeof board->tag, 0) != (ssize_t)sizeof board->tag) {
        quoit_say("no memory for the addresses of the hosts: %s [Q0215]", strerror(errno));
        return false;
    }
    board->contacts = contacts;
    job->network = board;
    return true;
}

int network_board_fd(const struct job *job)
{
    return job->network->fd;
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

void network_describe_load(const struct job *job, struct quoit_proxy_message *message_out)
{
    snprintf(message_out->body.driver, QUOIT_PROXY_TEXT_BYTES, "%s", driver_of(job));
}

const void *network_contacts(const struct job *job)
{
    return job->network->contacts;
}

void network_take_contacts(struct job *job, const void *contacts)
{
    memcpy(job->network->contacts, contacts, (size_t)job->plan->host_count * QUOIT_NETWORK_CONTACT_BYTES);
}

void network_note_sign(struct job *job, uint32_t host)
{
    _Atomic uint64_t *signs = quoit_proxy_board_signs(job->network->contacts, job->plan->host_count);
    atomic_store_explicit(&signs[host], quoit_clock_now_ns(), memory_order_relaxed);
}

bool network_add_contact(struct job *job, uint32_t host, const void *contact)
{
    memcpy(job->network->contacts[host], contact, QUOIT_NETWORK_CONTACT_BYTES);
    return ++job->network->contact_count == job->plan->host_count;
}

/* Where the hosts are processes of this machine, the traffic stays in it without a word. */
void network_describe(const struct job *job, struct quoit_proxy_message *start)
{
    const char *device = plan_text(job->plan, QUOIT_OPT_NETWORK_DEVICE);
    start->body.start.has_network = true;
    start->body.start.tag = job->network->tag;
    snprintf(start->body.start.driver, QUOIT_PROXY_TEXT_BYTES, "%s", driver_of(job));
    snprintf(start->body.start.provider, QUOIT_PROXY_TEXT_BYTES, "%s",
             plan_text(job->plan, QUOIT_OPT_NETWORK_PROVIDER));
    snprintf(start->body.start.devices, QUOIT_DEVICES_BYTES, "%s",
             device[0] || job->role == ROLE_AGENT ? device : "lo");
    snprintf(start->body.start.network_ports, QUOIT_PROXY_TEXT_BYTES, "%s",
             plan_text(job->plan, QUOIT_OPT_NETWORK_PORTS));
}
