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
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/log.h"
#include "boot/heap_default.h"
#include "env/descriptors.h"
#include "env/limits.h"
#include "env/map.h"
#include "env/park.h"
#include "network.h"
#include "proxy/proxy.h"

#define PAGE_BYTES     4096u
#define PROXY_FIRST_FD 3

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
    return quoit_heap_default_bytes(pes_of_machine, pe_count, map_count(job), data_bytes);
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

void hosts_pass(struct job *job, const struct talk_frame *frame, const void *bytes)
{
    if (frame->host == TALK_TO_ALL) {
        for (uint32_t i = 0; i < job->plan->host_count; i++)
            if (hosts_is_next(&job->hosts[i]))
                talk_pass(&job->hosts[i].talk, frame, bytes);
    } else if (frame->host < job->plan->host_count && job->hosts[frame->host].via != HOST_NOT_BELOW) {
        talk_pass(&job->hosts[job->hosts[frame->host].via].talk, frame, bytes);
    }
}

void hosts_say(struct job *job, uint32_t host, enum talk_kind kind, uint32_t pe, const void *bytes, size_t count)
{
    const struct talk_frame frame = {.kind = kind, .pe = pe, .bytes = (uint32_t)count, .host = host};
    hosts_pass(job, &frame, bytes);
}

void hosts_say_all(struct job *job, enum talk_kind kind, uint32_t pe, const void *bytes, size_t count)
{
    if (job->role == ROLE_HEAD)
        hosts_say(job, TALK_TO_ALL, kind, pe, bytes, count);
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

static struct quoit_wish_host wish_host_of(void *arg, uint32_t pe)
{
    const struct job *job = arg;
    const struct host *host = &job->hosts[job->pes[pe].host];
    return (struct quoit_wish_host){.layout = &host->layout, .front = host->front, .memory_fd = host->memory_fd};
}

struct quoit_wish_job hosts_wish_job(struct job *job)
{
    return (struct quoit_wish_job){.pe_count = job->plan->pe_count,
                                   .is_partial = job->role != ROLE_ALONE,
                                   .host_of = wish_host_of,
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

static void say_no_memory(const struct host *host, int error)
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
        say_no_memory(host, errno);
        return false;
    }
    host->front = front;
    for (uint32_t i = 0; i < host->layout.local_count + host->layout.lane_count && job->config.trace_count; i++)
        quoit_memory_trace(&host->layout, front, i)->event_count = job->config.trace_count;
    if (!quoit_job_config_has_proxies(&job->config)) /* else its proxy does */
        ((struct quoit_host_header *)host->front)->machine =
            quoit_machine_of(&job->config, host->index, true, quoit_limits_core_count());
    publish_descriptor(job, host);
    return true;
}

/* Words from a proxy to the launcher. */
struct proxy_word {
    enum { PROXY_READY = 1, PROXY_CUT_OFF, PROXY_LOST, PROXY_OFFERS } kind;
    uint32_t dead_links[2];
    uint32_t lost_host;
    bool is_silent; /* the lost host, whose connection is up */
};

static void tell(int fd, const struct proxy_word *word)
{
    while (write(fd, word, sizeof *word) < 0 && errno == EINTR)
        ;
}

static void tell_ready(void *arg)
{
    tell(*(const int *)arg, &(struct proxy_word){.kind = PROXY_READY});
}

static void tell_cut_off(void *arg, uint32_t first_link, uint32_t second_link)
{
    tell(*(const int *)arg, &(struct proxy_word){.kind = PROXY_CUT_OFF, .dead_links = {first_link, second_link}});
}

/* A proxy's end of a network. */
struct network_end {
    struct network_seat seat; /* first */
    int ready_fd;
    bool is_lost_told; /* of the first host, which ends the job */
};

static bool exchange(void *arg, const void *own, uint32_t bytes, void *all_out)
{
    const struct network_end *end = arg;
    network_offer(&end->seat, own, bytes);
    tell(end->ready_fd, &(struct proxy_word){.kind = PROXY_OFFERS});
    return network_gather(&end->seat, bytes, all_out);
}

static void tell_lost(void *arg, uint32_t host, bool is_silent)
{
    struct network_end *end = arg;
    if (!end->is_lost_told)
        tell(end->ready_fd, &(struct proxy_word){.kind = PROXY_LOST, .lost_host = host, .is_silent = is_silent});
    end->is_lost_told = true;
}

static void join_network(const struct job *job, uint32_t host, struct network_end *end)
{
    network_sit_down(job, host, &end->seat);
    end->seat.config.exchange = exchange;
    end->seat.config.on_lost = tell_lost;
    end->seat.config.arg = end;
}

/* Moves the descriptors that a proxy needs to PROXY_FIRST_FD.. and closes all others, so that it holds no pipe or
 * socket of a PE open. */
static bool keep_only(int *fds, int count)
{
    for (int i = 0; i < count; i++) {
        fds[i] = fcntl(fds[i], F_DUPFD, PROXY_FIRST_FD + count);
        if (fds[i] < 0) {
            quoit_say("no descriptor for a proxy: %s (ulimit -n) [Q0213]", strerror(errno));
            return false;
        }
    }
    for (int i = 0; i < count; i++)
        fds[i] = dup2(fds[i], PROXY_FIRST_FD + i);
    close_range((unsigned)(PROXY_FIRST_FD + count), ~0u, 0);
    int nothing = open("/dev/null", O_RDWR);
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDOUT_FILENO);
    close(nothing);
    return true;
}

/* Of a proxy that was started before its PEs: the job config and the memory, for which it has waited. False: there is
 * nothing to serve. */
static bool hear_start(struct job *job, struct host *host, int start_fd, int *memory_fd_out)
{
    struct quoit_ancillary came = {.fds = memory_fd_out, .fd_max = 1};
    ssize_t n = quoit_receive_with_descriptors(start_fd, &job->config, sizeof job->config, &came, 0);
    close(start_fd);
    return n == (ssize_t)sizeof job->config && came.fd_count == 1 && lay_out(job, host);
}

/* The proxy's process, from fork to its end. job and host are its own copies. */
static int serve(struct job *job, struct host *host, int memory_or_start_fd, int ready_fd, pid_t parent)
{
    enum { MEMORY, READY, ENDS, FDS_MAX = ENDS + QUOIT_SIDE_COUNT * QUOIT_PORT_ENDPOINT_FDS };
    char who[24];
    sigset_t none;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        return 0;
    prctl(PR_SET_NAME, "quoit-proxy");
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    snprintf(who, sizeof who, "host%u", host->index);
    quoit_log_setup(quoit_options_log_level(&job->plan->options), who);
    int fds[FDS_MAX] = {memory_or_start_fd, ready_fd}, fd_count = ENDS;
    struct quoit_port_endpoint ends[QUOIT_SIDE_COUNT] = {0};
    struct network_end network = {0};
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT && quoit_layout_has_links(&host->layout); side++) {
        if (hosts_describe(job, host->index, side, &ends[side]) != QUOIT_OK) {
            quoit_say("the driver %s has no port for host%u", job->driver->name, host->index);
            return 1;
        }
        memcpy(fds + fd_count, ends[side].fds, ends[side].fd_count * sizeof fds[0]);
        fd_count += (int)ends[side].fd_count;
    }
    if (!keep_only(fds, fd_count))
        return 1;
    if (network_is_used(job))
        network_load(job);
    if (network_is_alone(job) && !hear_start(job, host, fds[MEMORY], &fds[MEMORY]))
        return 1;
    memcpy(ends[QUOIT_LEFT].fds, fds + ENDS, ends[QUOIT_LEFT].fd_count * sizeof fds[0]);
    memcpy(ends[QUOIT_RIGHT].fds, fds + ENDS + ends[QUOIT_LEFT].fd_count, ends[QUOIT_RIGHT].fd_count * sizeof fds[0]);
    uint64_t bytes = host->layout.total_bytes;
    void *memory = quoit_map_file(fds[MEMORY], bytes, PROT_READ | PROT_WRITE);
    if (!memory) {
        quoit_say("cannot map %llu MiB: %s", (unsigned long long)(bytes >> 20), strerror(errno));
        return 1;
    }
    struct quoit_proxy_config config = {
        .layout = &host->layout,
        .memory = memory,
        .machine = quoit_machine_of(&job->config, host->index, is_one_machine(job), quoit_limits_core_count()),
        .link_timeout_ns = plan_number(job->plan, QUOIT_OPT_LINK_TIMEOUT),
        .link_limit_ns = plan_number(job->plan, QUOIT_OPT_LINK_LIMIT),
        .dma_bytes = plan_number(job->plan, QUOIT_OPT_DMA_BYTES),
        .on_ready = tell_ready,
        .on_cut_off = tell_cut_off,
        .on_ready_arg = &fds[READY],
    };
    for (int side = 0; side < QUOIT_SIDE_COUNT; side++) {
        uint32_t link = side == QUOIT_RIGHT ? host->index : hosts_neighbour(job, host->index, QUOIT_LEFT);
        config.is_down[side] = job->plan->has_ring && (job->plan->cut_links >> link & 1);
        config.ports[side] =
            (struct quoit_port_config){.driver = job->driver, .memory = {memory, bytes}, .endpoint = &ends[side]};
    }
    network.ready_fd = fds[READY];
    if (network_is_used(job)) {
        join_network(job, host->index, &network);
        config.network = &network.seat.config;
    }
    return quoit_proxy_run(&config) == QUOIT_OK ? 0 : 1;
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
        hosts_say(job, host, TALK_SIGNAL, TALK_TO_PROXY, &number, sizeof number);
    else if (job->hosts[host].proxy_pid)
        kill(job->hosts[host].proxy_pid, SIGKILL);
}

static void take_word(struct host *host, const struct proxy_word *word)
{
    struct job *job = host->job;
    if (word->kind == PROXY_READY) {
        host->is_ready = true;
    } else if (word->kind == PROXY_LOST && word->lost_host < job->plan->host_count) {
        /* It hangs, if it has not died: its end is what ends the job, and names it. */
        if (job->proxies_stop_ns)
            return;
        struct host *lost = &job->hosts[word->lost_host];
        if (lost->missed_by == HOST_NONE) {
            lost->missed_by = host->index;
            lost->is_silent = word->is_silent;
        }
        hosts_kill_proxy(job, word->lost_host);
    } else if (word->kind == PROXY_CUT_OFF && !hosts_cut_off(job) && word->dead_links[0] < job->plan->host_count &&
               word->dead_links[1] < job->plan->host_count) {
        memcpy(job->dead_links, word->dead_links, sizeof job->dead_links);
        host->is_cut_off = true;
    }
}

void hosts_take_word(struct host *host, const void *word, size_t bytes)
{
    struct proxy_word copy;
    if (bytes != sizeof copy)
        return;
    memcpy(&copy, word, sizeof copy);
    take_word(host, &copy);
}

/* A word is shorter than PIPE_BUF, so it arrives whole. */
static void proxy_speaks(struct watch *watch, uint32_t events)
{
    (void)events;
    struct proxy_word word;
    struct host *host = watch->owner;
    struct job *job = host->job;
    if (read(watch->fd, &word, sizeof word) != (ssize_t)sizeof word)
        loop_close(&job->loop, watch); /* it ended, which SIGCHLD reports */
    else if (job->role != ROLE_AGENT)
        take_word(host, &word);
    else if (word.kind == PROXY_OFFERS)
        talk_say(&job->talk, TALK_CONTACT, host->index, network_contact(job, host->index), QUOIT_NETWORK_CONTACT_BYTES);
    else
        talk_say(&job->talk, TALK_PROXY, host->index, &word, sizeof word);
}

static bool start_proxy(struct job *job, struct host *host, int memory_or_start_fd)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        quoit_say("cannot start the proxy of host%u: %s (ulimit -n) [Q0213]", host->index, strerror(errno));
        return false;
    }
    pid_t parent = getpid();
    host->proxy_pid = fork();
    if (host->proxy_pid == 0)
        _exit(serve(job, host, memory_or_start_fd, ends[1], parent));
    close(ends[1]);
    if (host->proxy_pid < 0) {
        host->proxy_pid = 0;
        close(ends[0]);
        quoit_say("cannot start the proxy of host%u: %s (ulimit -u, or a control group's pids) [Q0213]", host->index,
                  strerror(errno));
        return false;
    }
    host->has_proxy = true;
    host->proxy_ready = (struct watch){.fd = ends[0], .events = EPOLLIN, .ready = proxy_speaks, .owner = host};
    loop_add(&job->loop, &host->proxy_ready);
    return true;
}

/* Where there are no links: the proxy is told the rest by say_start(). */
static bool start_waiting_proxy(struct job *job, struct host *host)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        quoit_say("cannot start the proxy of host%u: %s (ulimit -n) [Q0213]", host->index, strerror(errno));
        return false;
    }
    host->proxy_start_fd = ends[0];
    bool is_started = start_proxy(job, host, ends[1]);
    close(ends[1]);
    return is_started;
}

/* A proxy that has died meanwhile is reaped. */
static void say_start(const struct job *job, struct host *host)
{
    (void)quoit_send_with_descriptors(host->proxy_start_fd, &job->config, sizeof job->config, &host->memory_fd, 1, 0);
    close(host->proxy_start_fd);
    host->proxy_start_fd = -1;
}

static bool begin_proxy(struct job *job, struct host *host)
{
    if (!network_is_alone(job))
        return start_proxy(job, host, host->memory_fd);
    say_start(job, host);
    return true;
}

bool hosts_prepare(struct job *job)
{
    if (!network_is_used(job))
        return true;
    bool is_started = network_open(job);
    for (uint32_t i = 0; i < job->plan->host_count && is_started && network_is_alone(job); i++)
        if (job_is_here(job, i))
            is_started = start_waiting_proxy(job, &job->hosts[i]);
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
    return job->plan->has_ring && job->has_layout && (job->ring.fd < 0 || poll(&ended, 1, 0) > 0);
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
            say_no_memory(host, errno);
            return false;
        }
        host->has_proxy = quoit_job_config_has_proxies(&job->config);
    }
    hosts_say_all(job, TALK_MAKE, 0, &make, sizeof make);
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
    quoit_park_setup();
    for (uint32_t i = 0; i < job->plan->host_count; i++)
        if (job->hosts[i].proxy_pid && job->hosts[i].proxy_start_fd >= 0)
            kill(job->hosts[i].proxy_pid, SIGKILL); /* there was nothing to serve */
        else if (job->hosts[i].proxy_pid && job->hosts[i].front)
            quoit_proxy_stop(&job->hosts[i].layout, job->hosts[i].front);
    hosts_say_all(job, TALK_STOP, 0, NULL, 0);
    /* An agent leaves it to oshrun, which tells the user: were it not later, its own kill would look like a proxy's
     * death. */
    job->proxies_stop_ns = loop_now_ns(&job->loop) + (job->role == ROLE_AGENT ? 2 : 1) * HOSTS_STOP_NS;
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
