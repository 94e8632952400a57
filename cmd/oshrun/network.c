/* SPDX-License-Identifier: BSD-3-Clause */
#include "network.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/log.h"

struct network_board {
    uint64_t tag;
    struct quoit_board board;
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
    struct network_board *network = calloc(1, sizeof *network);
    if (!network || quoit_board_open(&network->board, job->plan->host_count) != QUOIT_OK ||
        getrandom(&network->tag, sizeof network->tag, 0) != (ssize_t)sizeof network->tag) {
        quoit_say("no memory for the addresses of the hosts: %s [Q0215]", strerror(errno));
        return false;
    }
    job->network = network;
    return true;
}

struct quoit_board *network_board(const struct job *job)
{
    return &job->network->board;
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
