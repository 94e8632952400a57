/* SPDX-License-Identifier: BSD-3-Clause */
#include "hosts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/step.h"
#include "boot/heap_default.h"
#include "env/descriptors.h"
#include "env/limits.h"
#include "env/map.h"
#include "env/park.h"
#include "env/process.h"
#include "network.h"
#include "proxy/proxy.h"

#define PAGE_BYTES  4096u
#define NO_LIMIT_NS (UINT64_C(365) * 86400 * 1000000000) /* of proxies that oshrun sees itself (awaited.h) */

_Static_assert(HOSTS_NAME_BYTES == QUOIT_HOST_NAME_BYTES, "quoit top shows the same names");

/* How often a PE or proxy maps the memory of a host: its own, and on a ring those of both neighbours. */
static uint32_t map_count(const struct job *job)
{
    return job->plan->host_count > 1 && job->role == ROLE_ALONE ? 3 : 1;
}

static bool is_one_machine(const struct job *job)
{
    return job->role == ROLE_ALONE && quoit_port_driver_is_one_machine(job->driver);
}

uint64_t hosts_default_heap(const struct job *job, uint64_t data_bytes)
{
    uint32_t host = job->own_host;
    uint32_t pe_count = job->role == ROLE_ALONE ? quoit_job_config_most_pes(&job->config)
                                                : quoit_job_config_pes_of_host(&job->config, host);
    uint32_t pes_of_machine = quoit_machine_of(&job->config, host, is_one_machine(job), 1).pe_count;
    return quoit_heap_default_bytes(pes_of_machine, pe_count, map_count(job), data_bytes, job->heap_most_bytes);
}

const char *hosts_name(const struct job *job, uint32_t host, char text[HOSTS_NAME_BYTES])
{
    if (host < job->plan->machines.count)
        snprintf(text, HOSTS_NAME_BYTES, "%s", job->plan->machines.list[host].name);
    else
        snprintf(text, HOSTS_NAME_BYTES, "host%u", host);
    return text;
}

void hosts_find_ways(struct job *job)
{
    uint32_t own = job->role == ROLE_AGENT ? job->own_host : MACHINE_HEAD;
    const struct machine *list = job->plan->machines.list;
    for (uint32_t i = 0; i < job->plan->host_count; i++) {
        uint32_t at = i;
        while (job->role != ROLE_ALONE && list[at].parent != own && list[at].parent != MACHINE_HEAD)
            at = list[at].parent;
        bool is_below = job->role != ROLE_ALONE && list[at].parent == own;
        job->hosts[i].via = is_below ? at : HOST_NOT_BELOW;
    }
}

bool hosts_is_next(const struct host *host)
{
    return host->via == host->index;
}

bool hosts_have_agents(const struct job *job)
{
    for (uint32_t i = 0; i < job->plan->host_count; i++)
        if (job->hosts[i].via != HOST_NOT_BELOW && !job->hosts[i].is_gone)
            return true;
    return false;
}

void hosts_pass(struct job *job, const struct quoit_control_frame *frame, const void *bytes)
{
    if (frame->host == QUOIT_CONTROL_TO_ALL) {
        for (uint32_t i = 0; i < job->plan->host_count; i++)
            if (hosts_is_next(&job->hosts[i]))
                control_pass(&job->hosts[i].control, frame, bytes);
    } else if (frame->host < job->plan->host_count && job->hosts[frame->host].via != HOST_NOT_BELOW) {
        control_pass(&job->hosts[job->hosts[frame->host].via].control, frame, bytes);
    }
}

void hosts_send(struct job *job, uint32_t host, enum quoit_control_kind kind, uint32_t pe, const void *bytes,
                size_t count)
{
    const struct quoit_control_frame frame = {.kind = kind, .pe = pe, .bytes = (uint32_t)count, .host = host};
    hosts_pass(job, &frame, bytes);
}

void hosts_send_all(struct job *job, enum quoit_control_kind kind, uint32_t pe, const void *bytes, size_t count)
{
    if (job->role == ROLE_HEAD)
        hosts_send(job, QUOIT_CONTROL_TO_ALL, kind, pe, bytes, count);
}

uint32_t hosts_neighbour(const struct job *job, uint32_t host, enum quoit_side side)
{
    return quoit_layout_neighbour(&job->hosts[host].layout, side);
}

/* Link i joins host i, at its right, to the next host, at its left. */
enum quoit_status hosts_describe(const struct job *job, uint32_t host, enum quoit_side side,
                                 struct quoit_port_endpoint *endpoint_out)
{
    if (job->plan->has_ring)
        return quoit_share_describe(&job->share, host, side == QUOIT_RIGHT ? 0 : 1, endpoint_out);
    if (plan_has_bridges(job->plan)) {
        const struct quoit_port_site cable = {
            .link_fd = job->bridge_fds[side], .peer_memory_fd = -1, .side = side == QUOIT_RIGHT ? 0 : 1};
        return quoit_port_driver_describe(job->driver, &cable, endpoint_out);
    }
    const struct quoit_port_site site = {
        .link_fd = job->hosts[side == QUOIT_RIGHT ? host : hosts_neighbour(job, host, QUOIT_LEFT)].link_fd,
        .peer_memory_fd = job->hosts[hosts_neighbour(job, host, side)].memory_fd,
        .side = side == QUOIT_RIGHT ? 0 : 1,
        .knobs = job->knobs,
    };
    return quoit_port_driver_describe(job->driver, &site, endpoint_out);
}

struct quoit_pe_shared *hosts_pe_shared(const struct job *job, uint32_t pe)
{
    const struct host *host = &job->hosts[job->pes[pe].host];
    if (!host->front)
        return NULL;
    return quoit_memory_pe(&host->layout, host->front, pe - host->layout.first_pe);
}

static struct quoit_wait_desc_host wait_desc_host_of(void *arg, uint32_t pe)
{
    const struct job *job = arg;
    const struct host *host = &job->hosts[job->pes[pe].host];
    return (struct quoit_wait_desc_host){.layout = &host->layout, .front = host->front, .memory_fd = host->memory_fd};
}

struct quoit_wait_desc_job hosts_wait_desc_job(struct job *job)
{
    return (struct quoit_wait_desc_job){.pe_count = job->plan->pe_count,
                                        .is_partial = job->role != ROLE_ALONE,
                                        .host_of = wait_desc_host_of,
                                        .arg = job};
}

/* Reports which limit of this process, and so of the PEs, refuses the memory of a host; false: none. */
static bool is_refused(const struct job *job, const struct host *host)
{
    uint64_t bytes = host->layout.total_bytes, addresses = quoit_limits_address_bytes();
    uint64_t mapped = bytes * map_count(job) + job->config.heap_bytes;
    if (mapped > addresses)
        quoit_say("each PE of host%u needs %llu MiB of address space, but ulimit -v leaves %llu MiB; a smaller "
                  "SHMEM_SYMMETRIC_SIZE (%llu MiB a PE now) needs less [Q0215]",
                  host->index, (unsigned long long)(mapped >> 20), (unsigned long long)(addresses >> 20),
                  (unsigned long long)(job->config.heap_bytes >> 20));
    else if (bytes > quoit_limits_file_bytes())
        quoit_say("the memory of host%u is a file of %llu MiB, but ulimit -f allows %llu MiB; a smaller "
                  "SHMEM_SYMMETRIC_SIZE (%llu MiB a PE now) needs less [Q0215]",
                  host->index, (unsigned long long)(bytes >> 20), (unsigned long long)(quoit_limits_file_bytes() >> 20),
                  (unsigned long long)(job->config.heap_bytes >> 20));
    else
        return false;
    return true;
}

static void report_no_memory(const struct host *host, int error)
{
    if (error == EPERM || error == ENOSYS)
        quoit_say(
            "the kernel refuses memfd_create, which makes the memory of a job: %s; a container's filter of system "
            "calls (seccomp) must allow it [Q0215]",
            strerror(error));
    else
        quoit_say("cannot make the %llu MiB of memory of host%u: %s%s [Q0215]",
                  (unsigned long long)(host->layout.total_bytes >> 20), host->index, strerror(error),
                  error == EMFILE ? " (ulimit -n)" : "; a smaller SHMEM_SYMMETRIC_SIZE needs less");
}

void hosts_describe_job(const struct job *job, struct quoit_job_descriptor *descriptor_out)
{
    const char *path = plan_program_of(job->plan, 0)->path, *slash = strrchr(path, '/');
    *descriptor_out = (struct quoit_job_descriptor){.magic = QUOIT_JOB_DESCRIPTOR_MAGIC,
                                                    .job = job->config,
                                                    .start_ns = job->start_ns,
                                                    .tag = job->tag,
                                                    .is_part = job->role == ROLE_AGENT};
    snprintf(descriptor_out->program, sizeof descriptor_out->program, "%s", slash ? slash + 1 : path);
}

static void publish_descriptor(const struct job *job, const struct host *host)
{
    struct quoit_job_descriptor *descriptor = &((struct quoit_host_header *)host->front)->descriptor, made;
    hosts_describe_job(job, &made);
    const uint32_t magic = made.magic;
    made.magic = 0;
    made.host = host->index;
    hosts_name(job, host->index, made.host_name);
    *descriptor = made;
    __atomic_store_n(&descriptor->magic, magic, __ATOMIC_RELEASE); /* pairs with jobs.c of quoit */
}

static bool lay_out(const struct job *job, struct host *host)
{
    if (quoit_layout_make(&job->config, host->index, &host->layout) == QUOIT_OK)
        return true;
    quoit_say("the memory of host%u cannot be laid out: %llu MiB of variables and %llu MiB of heap for each PE "
              "[Q0215]",
              host->index, (unsigned long long)(job->config.data_bytes >> 20),
              (unsigned long long)(job->config.heap_bytes >> 20));
    return false;
}

static bool open_host(struct job *job, struct host *host)
{
    if (!lay_out(job, host) || is_refused(job, host))
        return false;
    enum quoit_status status = QUOIT_OK;
    if (host->memory_fd < 0)
        status = quoit_port_driver_memory(job->driver, "quoit-host", host->layout.total_bytes, &host->memory_fd);
    void *front = MAP_FAILED;
    if (status == QUOIT_OK)
        front = mmap(NULL, host->layout.channels, PROT_READ | PROT_WRITE, MAP_SHARED, host->memory_fd, 0);
    if (front != MAP_FAILED && host->link_fd < 0 && quoit_layout_has_links(&host->layout))
        status = quoit_port_driver_link(job->driver, &host->link_fd);
    if (front == MAP_FAILED || status != QUOIT_OK) {
        report_no_memory(host, errno);
        return false;
    }
    host->front = front;
    for (uint32_t i = 0; i < host->layout.local_count + host->layout.lane_count && job->config.trace_count; i++)
        quoit_memory_trace(&host->layout, front, i)->event_count = job->config.trace_count;
    if (!quoit_job_config_has_proxies(&job->config)) { /* else its proxy does */
        struct quoit_host_header *header = host->front;
        header->machine = quoit_machine_of(&job->config, host->index, true, quoit_limits_core_count());
        if (job->clock) /* a look in vain is a turn of a PE */
            header->machine.policy = (struct quoit_wait_policy){0};
    }
    publish_descriptor(job, host);
    return true;
}

const struct host *hosts_cut_off(const struct job *job)
{
    for (uint32_t i = 0; i < job->plan->host_count; i++)
        if (job->hosts[i].is_cut_off)
            return &job->hosts[i];
    return NULL;
}

void hosts_kill_proxy(struct job *job, uint32_t host)
{
    const int32_t number = SIGKILL;
    if (job->role == ROLE_HEAD)
        hosts_send(job, host, QUOIT_CONTROL_SIGNAL, CONTROL_TO_PROXY, &number, sizeof number);
    else if (job->hosts[host].proxy_pid)
        kill(job->hosts[host].proxy_pid, SIGKILL);
}

void hosts_dismiss_proxy(struct job *job, uint32_t host_index)
{
    const int32_t number = SIGKILL;
    struct host *host = &job->hosts[host_index];
    struct quoit_proxy_message dismissed = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_PROXY_DISMISSED};
    struct quoit_process process;
    if (job->role == ROLE_HEAD)
        hosts_send(job, host_index, QUOIT_CONTROL_SIGNAL, CONTROL_TO_LOST_PROXY, &number, sizeof number);
    if (!host->proxy_pid || !quoit_process_look(host->proxy_pid, &process) || process.is_exiting)
        return;
    kill(host->proxy_pid, SIGKILL);
    if (job->role == ROLE_AGENT)
        control_send(&job->control, QUOIT_CONTROL_PROXY, host_index, &dismissed, sizeof dismissed);
    hosts_take_message(host, &dismissed);
}

static void lose_host(struct host *host, const struct quoit_proxy_message *message)
{
    struct job *job = host->job;
    uint32_t index = message->body.lost.host;
    if (job->proxies_stop_ns || index >= job->plan->host_count)
        return;
    /* Its end is what ends the job, and names it. */
    struct host *lost = &job->hosts[index];
    if (lost->missed_by == HOST_NONE) {
        lost->missed_by = host->index;
        lost->is_silent = message->body.lost.is_silent != 0;
    }
    hosts_dismiss_proxy(job, index);
}

static void send_to_proxy(const struct host *host, const struct quoit_proxy_message *message, const int *fds,
                          uint32_t fd_count)
{
    if (host->proxy.fd >= 0) /* else it has ended, and is reaped */
        (void)quoit_send_with_descriptors(host->proxy.fd, message, sizeof *message, fds, fd_count, 0);
}

void hosts_send_contacts(struct job *job)
{
    const struct quoit_proxy_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_PROXY_CONTACTS};
    for (uint32_t i = 0; i < job->plan->host_count; i++)
        send_to_proxy(&job->hosts[i], &message, NULL, 0);
    if (job->role == ROLE_HEAD)
        hosts_send_all(job, QUOIT_CONTROL_CONTACTS, 0, network_board(job)->contacts,
                       (size_t)job->plan->host_count * QUOIT_NETWORK_CONTACT_BYTES);
}

static void take_contact(struct host *host, const struct quoit_proxy_message *message)
{
    if (!host->job->network || host->stage >= PROXY_MEETS)
        return;
    host->stage = PROXY_MEETS;
    if (quoit_board_add(network_board(host->job), host->index, message->body.contact.bytes))
        hosts_send_contacts(host->job);
}

/* What the proxy of a host finds of the others. */
static void note_silence(const struct host *host, const struct quoit_proxy_message *message)
{
    struct job *job = host->job;
    if (message->kind == QUOIT_PROXY_READY)
        job->has_findings = network_is_used(job);
    else if (message->kind == QUOIT_PROXY_SILENCE)
        quoit_silences_take(&job->silences, host->index, &message->body.silence, loop_now_ns(&job->loop));
}

void hosts_take_message(struct host *host, const struct quoit_proxy_message *message)
{
    struct job *job = host->job;
    note_silence(host, message);
    uint32_t host_count = job->plan->host_count;
    const uint32_t *dead = message->body.dead_links;
    if (message->kind == QUOIT_PROXY_READY) {
        host->stage = PROXY_SERVES;
    } else if (message->kind == QUOIT_PROXY_DISMISSED) {
        host->is_dismissed = true;
    } else if (message->kind == QUOIT_PROXY_FAILED) {
        host->proxy_failure = (uint32_t)message->body.status;
    } else if (message->kind == QUOIT_PROXY_CONTACT) {
        take_contact(host, message);
    } else if (message->kind == QUOIT_PROXY_JOINS) {
        host->stage = PROXY_JOINS;
    } else if (message->kind == QUOIT_PROXY_CLOSED) {
        host->has_closed = true;
    } else if (message->kind == QUOIT_PROXY_LOST) {
        lose_host(host, message);
    } else if (message->kind == QUOIT_PROXY_CUT_OFF && !hosts_cut_off(job) && dead[0] < host_count &&
               dead[1] < host_count) {
        memcpy(job->dead_links, dead, sizeof job->dead_links);
        host->is_cut_off = true;
    }
}

/* The proxy has closed its socket or writes garbage there. One that ends does so too, which SIGCHLD reports; one that
 * runs on is of no use, and its end then ends the job. */
static void lose_proxy(struct host *host)
{
    struct job *job = host->job;
    struct quoit_proxy_message closed = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_PROXY_CLOSED};
    struct quoit_process process;
    loop_close(&job->loop, &host->proxy);
    if (!host->proxy_pid || !quoit_process_look(host->proxy_pid, &process) || process.is_exiting)
        return;
    if (job->role == ROLE_AGENT)
        control_send(&job->control, QUOIT_CONTROL_PROXY, host->index, &closed, sizeof closed);
    hosts_take_message(host, &closed);
    kill(host->proxy_pid, SIGKILL);
}

static void proxy_ready(struct watch *watch, uint32_t events)
{
    (void)events;
    struct host *host = watch->owner;
    struct job *job = host->job;
    struct quoit_proxy_message message;
    ssize_t n = recv(watch->fd, &message, sizeof message, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n != (ssize_t)sizeof message || message.magic != QUOIT_BOOT_MAGIC) {
        lose_proxy(host);
    } else if (job->role == ROLE_AGENT) {
        note_silence(host, &message);
        if (message.kind != QUOIT_PROXY_SILENCE) /* which silence.h reports */
            control_send(&job->control, QUOIT_CONTROL_PROXY, host->index, &message, sizeof message);
    } else {
        hosts_take_message(host, &message);
    }
}

void hosts_drain_proxy(struct host *host)
{
    const struct watch *watch = &host->proxy;
    while (watch->fd >= 0 && poll(&(struct pollfd){.fd = watch->fd, .events = POLLIN}, 1, 0) > 0)
        proxy_ready(&host->proxy, EPOLLIN);
}

static bool start_proxy(struct job *job, struct host *host)
{
    struct quoit_proxy_message load = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_PROXY_LOAD};
    int fd = -1, error = quoit_program_spawn(NULL, QUOIT_PROXY_OPTION, &fd, &host->proxy_pid);
    if (error) {
        host->proxy_pid = 0;
        quoit_say("cannot start the proxy of host%u: %s%s [Q0213]", host->index, strerror(error),
                  error == EMFILE   ? " (ulimit -n)"
                  : error == EAGAIN ? " (ulimit -u, or a control group's pids)"
                                    : "");
        return false;
    }
    host->has_proxy = true;
    host->proxy = (struct watch){.fd = fd, .events = EPOLLIN, .ready = proxy_ready, .owner = host};
    loop_add(&job->loop, &host->proxy);
    if (network_is_used(job)) {
        network_describe_load(job, &load);
        send_to_proxy(host, &load, NULL, 0);
    }
    return true;
}

/* The ends of the host's links, if it has some, and their descriptors. */
static bool describe_ends(const struct job *job, const struct host *host, struct quoit_proxy_message *start, int *fds,
                          uint32_t *fd_count)
{
    if (!quoit_layout_has_links(&host->layout))
        return true;
    snprintf(start->body.start.ports, QUOIT_PROXY_TEXT_BYTES, "%s", job->driver->name);
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        struct quoit_port_endpoint *end = &start->body.start.ends[side];
        uint32_t link = side == QUOIT_RIGHT ? host->index : hosts_neighbour(job, host->index, QUOIT_LEFT);
        start->body.start.is_down[side] = job->plan->has_ring && (job->plan->cut_links >> link & 1);
        if (hosts_describe(job, host->index, side, end) != QUOIT_OK) {
            quoit_say("the driver %s has no port for host%u [Q0213]", job->driver->name, host->index);
            return false;
        }
        memcpy(fds + *fd_count, end->fds, end->fd_count * sizeof fds[0]);
        *fd_count += end->fd_count;
    }
    return true;
}

/* What the proxy has waited for. */
static bool begin_proxy(const struct job *job, struct host *host)
{
    struct quoit_proxy_message start = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_PROXY_START};
    int fds[QUOIT_PROXY_FDS_MAX] = {host->memory_fd};
    uint32_t fd_count = 1;
    start.body.start.job = job->config;
    start.body.start.machine =
        quoit_machine_of(&job->config, host->index, is_one_machine(job), quoit_limits_core_count());
    if (job->clock)
        start.body.start.machine.policy = (struct quoit_wait_policy){0}; /* as above */
    start.body.start.host = host->index;
    start.body.start.log_level = quoit_options_log_level(&job->plan->options);
    start.body.start.link_timeout_ns =
        is_one_machine(job) ? NO_LIMIT_NS : plan_number(job->plan, QUOIT_OPT_LINK_TIMEOUT);
    start.body.start.link_limit_ns = plan_number(job->plan, QUOIT_OPT_LINK_LIMIT);
    start.body.start.network_limit_ns = plan_number(job->plan, QUOIT_OPT_NETWORK_LIMIT);
    start.body.start.starter = (int32_t)getpid();
    start.body.start.dma_bytes = job->clock ? UINT64_MAX : plan_number(job->plan, QUOIT_OPT_DMA_BYTES);
    if (network_is_used(job)) {
        network_describe(job, &start);
        fds[fd_count++] = network_board(job)->fd;
    }
    if (!describe_ends(job, host, &start, fds, &fd_count))
        return false;
    send_to_proxy(host, &start, fds, fd_count);
    host->has_begun = true;
    return true;
}

bool hosts_prepare(struct job *job)
{
    quoit_step(job_step_name(job), job->own_host, "prepare");
    bool is_started = !network_is_used(job) || network_open(job);
    for (uint32_t i = 0; i < job->plan->host_count && is_started && quoit_job_config_has_proxies(&job->config); i++)
        if (job_is_here(job, i))
            is_started = start_proxy(job, &job->hosts[i]);
    return is_started;
}

/* The owner says nothing more to those who have their share. */
static void ring_speaks(struct watch *watch, uint32_t events)
{
    (void)events;
    loop_close(&((struct job *)watch->owner)->loop, watch);
}

bool hosts_have_lost_ring(const struct job *job)
{
    struct pollfd ended = {.fd = job->ring.fd, .events = POLLIN};
    if (!job->plan->has_ring)
        return false;
    if (!job->has_layout) /* PEs are on its hosts already, and end with them */
        return !quoit_share_exists(job->plan->ring_path);
    return job->ring.fd < 0 || poll(&ended, 1, 0) > 0;
}

/* Memory and links of all hosts from the ring of --ring. */
static bool attach_ring(struct job *job)
{
    struct quoit_share_request request = {.part.weight = (uint32_t)plan_number(job->plan, QUOIT_OPT_WEIGHT)};
    struct quoit_layout layout;
    const char *program = strrchr(job->plan->programs[0].argv[0], '/');
    snprintf(request.label, sizeof request.label, "%s", program ? program + 1 : job->plan->programs[0].argv[0]);
    for (uint32_t i = 0; i < job->plan->host_count; i++) {
        if (quoit_layout_make(&job->config, i, &layout) != QUOIT_OK)
            return false;
        request.memory_bytes[i] = layout.total_bytes;
    }
    job->ring = (struct watch){.fd = -1, .events = EPOLLIN, .ready = ring_speaks, .owner = job};
    enum quoit_status status = quoit_share_attach(job->plan->ring_path, &request, &job->share, &job->ring.fd);
    if (status != QUOIT_OK || job->share.ring.host_count != job->plan->host_count) {
        quoit_say("no share of the ring %s: %s%s [Q0224]", plan_text(job->plan, QUOIT_OPT_RING),
                  status == QUOIT_OK     ? "it has changed meanwhile"
                  : status == QUOIT_FULL ? "as many jobs run there as it takes"
                  : status == QUOIT_OUT_OF_RANGE
                      ? "as many of your jobs run there as one user may have (quoit ring up --user-jobs)"
                      : quoit_status_text(status),
                  status == QUOIT_SYSTEM ? "; a smaller SHMEM_SYMMETRIC_SIZE needs less" : "");
        return false;
    }
    loop_add(&job->loop, &job->ring);
    for (uint32_t i = 0; i < job->plan->host_count; i++) {
        job->hosts[i].memory_fd = job->share.memory_fds[i];
        job->hosts[i].link_fd = job->share.link_fds[i];
    }
    return true;
}

/* The head's: each agent makes its own, and the records in it are copied here when they are needed. */
static bool start_elsewhere(struct job *job)
{
    struct hosts_make make = {.config = job->config};
    if (network_is_used(job) && !network_open(job))
        return false;
    if (job->network)
        make.tag = network_tag(job);
    if (getrandom(&job->tag, sizeof job->tag, 0) != (ssize_t)sizeof job->tag) {
        quoit_say("the kernel gives no random numbers: %s [Q0213]", strerror(errno));
        return false;
    }
    make.job_tag = job->tag;
    for (uint32_t i = 0; i < job->plan->host_count; i++) {
        struct host *host = &job->hosts[i];
        if (!lay_out(job, host))
            return false;
        host->front = mmap(NULL, host->layout.channels, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (host->front == MAP_FAILED) {
            host->front = NULL;
            report_no_memory(host, errno);
            return false;
        }
        host->has_begun = true;
    }
    hosts_send_all(job, QUOIT_CONTROL_MAKE, 0, &make, sizeof make);
    return true;
}

/* The two ports of this machine. */
static bool open_bridges(struct job *job)
{
    const char *left = plan_text(job->plan, QUOIT_OPT_BRIDGES), *comma = strchr(left, ',');
    char paths[QUOIT_SIDE_COUNT][PATH_MAX];
    snprintf(paths[QUOIT_LEFT], PATH_MAX, "%.*s", (int)(comma - left), left);
    snprintf(paths[QUOIT_RIGHT], PATH_MAX, "%s", comma + 1);
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        job->bridge_fds[side] = open(paths[side], O_RDWR | O_CLOEXEC);
        if (job->bridge_fds[side] < 0) {
            quoit_say("cannot open the port %s of --bridges: %s%s [Q0226]", paths[side], strerror(errno),
                      errno == ENOENT ? "; load the chip's driver and quoit_ntb (docs/build-a-ring.md)" : "");
            return false;
        }
    }
    return true;
}

bool hosts_make_here(struct job *job, const struct hosts_make *make)
{
    struct host *host = &job->hosts[job->own_host];
    quoit_step("agent", job->own_host, "make");
    if (make->config.host_count != job->config.host_count || make->config.pe_count != job->config.pe_count)
        return false;
    job->config = make->config;
    job->tag = make->job_tag;
    if (job->network)
        network_take_tag(job, make->tag);
    if (plan_has_bridges(job->plan) && quoit_job_config_ring_of(&job->config, host->index).count > 1 &&
        !open_bridges(job))
        return false;
    return open_host(job, host) && (!quoit_job_config_has_proxies(&job->config) || begin_proxy(job, host));
}

/* PEs run in the namespaces of their host, as commands of quoit ring exec do, and see its Ethernet device. On a ring of
 * another user they stay in those of oshrun: the kernel lets no user enter. */
bool hosts_get_namespaces(struct job *job)
{
    for (uint32_t i = 0; i < job->plan->host_count && job->plan->has_ring; i++) {
        struct host *host = &job->hosts[i];
        if (quoit_job_config_pes_of_host(&job->config, i) == 0)
            continue;
        enum quoit_status status = quoit_share_get_namespaces(job->plan->ring_path, i, &host->namespaces);
        host->has_namespaces = status == QUOIT_OK;
        if (status == QUOIT_UNSUPPORTED)
            return true;
        if (status != QUOIT_OK) {
            quoit_say("host%u of the ring %s: %s [Q0227]", i, plan_text(job->plan, QUOIT_OPT_RING),
                      status == QUOIT_AGAIN ? "it is starting; try again in a second" : quoit_status_text(status));
            return false;
        }
    }
    return true;
}

bool hosts_start(struct job *job, uint64_t data_bytes)
{
    uint64_t heap_bytes = plan_number(job->plan, QUOIT_OPT_SYMMETRIC_SIZE);
    quoit_step("oshrun", 0, "layout");
    if (heap_bytes == 0)
        heap_bytes = job->role == ROLE_HEAD ? job->heap_default_bytes : hosts_default_heap(job, data_bytes);
    job->config.data_bytes = data_bytes;
    job->config.heap_bytes = (heap_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    if (job->role == ROLE_HEAD)
        return start_elsewhere(job);
    if (job->plan->cut_links != 0 && !quoit_job_config_has_failover(&job->config)) {
        quoit_say("no share of the ring %s: a link of it is cut, which a job with --protocol scratchpad or --barrier "
                  "papers does not survive; quoit ring mend [Q0224]",
                  plan_text(job->plan, QUOIT_OPT_RING));
        return false;
    }
    if (job->plan->has_ring && !attach_ring(job))
        return false;
    for (uint32_t i = 0; i < job->plan->host_count; i++)
        if (!open_host(job, &job->hosts[i]))
            return false;
    for (uint32_t i = 0; i < job->plan->host_count && quoit_job_config_has_proxies(&job->config); i++)
        if (!begin_proxy(job, &job->hosts[i]))
            return false;
    return true;
}

void hosts_stop(struct job *job)
{
    quoit_step(job_step_name(job), job->own_host, "stop");
    quoit_park_setup();
    for (uint32_t i = 0; i < job->plan->host_count; i++)
        if (job->hosts[i].proxy_pid && !job->hosts[i].has_begun)
            kill(job->hosts[i].proxy_pid, SIGKILL); /* there was nothing to serve */
        else if (job->hosts[i].proxy_pid)
            quoit_proxy_stop(&job->hosts[i].layout, job->hosts[i].front);
    hosts_send_all(job, QUOIT_CONTROL_STOP, 0, NULL, 0);
    /* An agent leaves it to oshrun, which notifies the user: were it not later, its own kill would look like a proxy's
     * death. */
    job->stop_begin_ns = loop_now_ns(&job->loop);
    job->proxies_stop_ns = job->stop_begin_ns + (job->role == ROLE_AGENT ? 1 + HOSTS_STOP_TIMES : 1) * HOSTS_STOP_NS;
}

void hosts_kill(struct job *job)
{
    for (uint32_t i = 0; i < job->plan->host_count; i++)
        if (job->hosts[i].proxy_pid)
            kill(job->hosts[i].proxy_pid, SIGKILL);
}

void hosts_lose(struct host *host)
{
    host->is_gone = true;
    host->has_proxy = false;
}

/* An agent ends after its PEs, its proxy and the agents below it. */
bool hosts_is_gone(const struct host *host)
{
    return !host->has_proxy && (host->via == HOST_NOT_BELOW || host->is_gone);
}

bool hosts_are_gone(const struct job *job)
{
    for (uint32_t i = 0; i < job->plan->host_count; i++)
        if (!hosts_is_gone(&job->hosts[i]))
            return false;
    return true;
}
