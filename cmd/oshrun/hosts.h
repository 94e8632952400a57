/* SPDX-License-Identifier: BSD-3-Clause */
/* hosts.h - the memories and links of the hosts, and their proxies. */
#ifndef OSHRUN_HOSTS_H
#define OSHRUN_HOSTS_H

#include "boot/proxy_process.h"
#include "job.h"

#define HOSTS_NAME_BYTES MACHINE_NAME_BYTES
#define HOSTS_STOP_NS    UINT64_C(3000000000) /* from hosts_stop() until what has not ended is killed; later, while */
#define HOSTS_STOP_TIMES 20u                  /* a proxy works, or waits for a processor; this often at most */

/* With --ring: the namespaces in which PEs run. False: an error was reported. */
bool hosts_get_namespaces(struct job *job);
/* Starts the proxies of this machine, which load the library of a network and wait for hosts_start(). Before the PEs,
 * which take as long to start. False: an error was reported. */
bool hosts_prepare(struct job *job);
/* Creates memories and links and has the proxies begin. False: an error was reported; the job must end. */
bool hosts_start(struct job *job, uint64_t data_bytes);
/* Asks the proxies to stop. */
void hosts_stop(struct job *job);
void hosts_kill(struct job *job);
/* The agent of a host below this process has ended or was lost, and its proxy with it. */
void hosts_lose(struct host *host);
/* Whether the proxy of the host, and of one below this process its agent, has ended. */
bool hosts_is_gone(const struct host *host);
bool hosts_are_gone(const struct job *job);
/* The host whose proxy reports two links down for too long; NULL: none. job->dead_links has the links. */
const struct host *hosts_cut_off(const struct job *job);
/* Whether the ring of --ring has ended, which ends the PEs on its hosts too. */
bool hosts_have_lost_ring(const struct job *job);
/* The endpoint with which a process of `host` opens its port of `side`. */
enum quoit_status hosts_describe(const struct job *job, uint32_t host, enum quoit_side side,
                                 struct quoit_port_endpoint *endpoint_out);
uint32_t hosts_neighbour(const struct job *job, uint32_t host, enum quoit_side side);
/* For quoit top: who this job is. */
void hosts_describe_job(const struct job *job, struct quoit_job_descriptor *descriptor_out);
/* "host3", or the name of its machine. */
const char *hosts_name(const struct job *job, uint32_t host, char text[HOSTS_NAME_BYTES]);

/* Several machines. */

/* What the head has an agent make. */
struct hosts_make {
    struct quoit_job_config config;
    uint64_t tag; /* of the network */
    uint64_t job_tag;
};
/* Of an agent: the memory and proxy of its host. False: reported. */
bool hosts_make_here(struct job *job, const struct hosts_make *make);
/* Of the head, or of oshrun alone: a message of the proxy of a host. */
void hosts_take_message(struct host *host, const struct quoit_proxy_message *message);
/* The board has the contacts of all hosts: notifies proxies, and of the head the agents. */
void hosts_send_contacts(struct job *job);
/* Finds host->via of all hosts. */
void hosts_find_ways(struct job *job);
/* Whether this process starts the agent of the host. */
bool hosts_is_next(const struct host *host);
/* Whether an agent that this process has started, or one below that, is still there. */
bool hosts_have_agents(const struct job *job);
/* Of an agent: what the head sends those below. */
void hosts_pass(struct job *job, const struct quoit_control_frame *frame, const void *bytes);
/* Of the head: to the agent of a host. */
void hosts_send(struct job *job, uint32_t host, enum quoit_control_kind kind, uint32_t pe, const void *bytes,
                size_t count);
/* Of the head: the same to all agents. */
void hosts_send_all(struct job *job, enum quoit_control_kind kind, uint32_t pe, const void *bytes, size_t count);
/* What the symmetric heap of a PE is limited to by the memory of this machine. */
uint64_t hosts_default_heap(const struct job *job, uint64_t data_bytes);
/* Takes what the proxy of a host has written and nobody has read. */
void hosts_drain_proxy(struct host *host);
/* Kills the proxy of a host. */
void hosts_kill_proxy(struct job *job, uint32_t host);
/* Ends the proxy of a host, which another one has lost, unless it has ended by itself. */
void hosts_dismiss_proxy(struct job *job, uint32_t host);

/* NULL before the layout. On the head it is a copy, as of the last RECORDS. */
struct quoit_pe_shared *hosts_pe_shared(const struct job *job, uint32_t pe);
/* Where the wait descriptors of PEs of this machine are read. */
struct quoit_wait_desc_job hosts_wait_desc_job(struct job *job);

#endif
