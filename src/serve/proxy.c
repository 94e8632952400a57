/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/proxy.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/step.h"
#include "boot/proxy_process.h"
#include "env/calls.h"
#include "env/clock.h"
#include "env/descriptors.h"
#include "env/map.h"
#include "net/net.h"
#include "port/driver.h"
#include "proxy/proxy.h"
#include "virtual/clock.h"

#define PORT       0          /* of frames between proxies */
#define LAST_NS    500000000u /* for a last frame to arrive at all hosts, of which some may be gone */
#define RETRY_NS   200000u
#define HEAD_BYTES ((uint32_t)offsetof(struct packet, body))

/* Descriptors of START. */
enum { MEMORY, BOARD };

struct process {
    struct quoit_layout layout;
    void *memory;
    const char *board;   /* NULL: no network */
    bool carries_frames; /* else the first host that is lost ends the job */
    bool has_lost;
    struct quoit_proxy *proxy;                 /* to carry frames by, */
    _Atomic bool is_gone[QUOIT_JOB_HOSTS_MAX]; /* but not to these hosts */
};

/* A frame between proxies, in the hosts' own byte order, as far as its kind has bytes. */
struct packet {
    uint32_t kind;
    uint32_t unused;
    union quoit_control_body body;
};

static void send_message(struct quoit_proxy_message message)
{
    message.magic = QUOIT_BOOT_MAGIC;
    quoit_proxy_process_send(QUOIT_PROGRAM_FD, &message);
}

static void on_ready(void *arg)
{
    const struct process *process = arg;
    quoit_step("proxy", process->layout.host, "ready");
    send_message((struct quoit_proxy_message){.kind = QUOIT_PROXY_READY});
    quoit_step("proxy", process->layout.host, "served");
}

static void on_cut_off(void *arg, uint32_t first_link, uint32_t second_link)
{
    (void)arg;
    send_message(
        (struct quoit_proxy_message){.kind = QUOIT_PROXY_CUT_OFF, .body.dead_links = {first_link, second_link}});
}

static void on_lost(void *arg, uint32_t host, bool is_silent)
{
    struct process *process = arg;
    atomic_store(&process->is_gone[host], true);
    if (process->carries_frames || !process->has_lost)
        send_message((struct quoit_proxy_message){.kind = QUOIT_PROXY_LOST, .body.lost = {host, is_silent}});
    process->has_lost = true;
}

static void on_silence(void *arg, uint32_t host, enum quoit_net_silence silence, uint64_t silent_ns, uint64_t dark_ns)
{
    struct quoit_proxy_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_PROXY_SILENCE};
    (void)arg;
    message.body.silence =
        (struct quoit_control_silence){.host = host, .silence = silence, .silent_ns = silent_ns, .dark_ns = dark_ns};
    quoit_proxy_process_offer(QUOIT_PROGRAM_FD, &message);
}

static uint64_t sign_age_ns(void *arg, uint32_t host)
{
    const struct process *process = arg;
    const _Atomic uint64_t *signs = quoit_board_signs(process->board, process->layout.job.host_count);
    uint64_t sign_ns = atomic_load_explicit(&signs[host], memory_order_relaxed), now_ns = quoit_clock_now_ns();
    if (sign_ns == 0)
        return UINT64_MAX;
    return sign_ns < now_ns ? now_ns - sign_ns : 0;
}

/* Waits without a limit: the supervisor knows which host has not sent its contact, and ends the job. */
static bool exchange(void *arg, const void *own, uint32_t bytes, void *all_out)
{
    const struct process *process = arg;
    struct quoit_proxy_message message = {.kind = QUOIT_PROXY_CONTACT};
    struct quoit_ancillary nothing = {.fd_max = 0};
    memcpy(message.body.contact.bytes, own, bytes);
    quoit_step("proxy", process->layout.host, "contact");
    send_message(message);
    ssize_t n = quoit_receive_with_descriptors(QUOIT_PROGRAM_FD, &message, sizeof message, &nothing, 0);
    if (n != (ssize_t)sizeof message || message.kind != QUOIT_PROXY_CONTACTS)
        return false; /* it has ended */
    quoit_step("proxy", process->layout.host, "contacts");
    for (uint32_t host = 0; host < process->layout.job.host_count; host++)
        memcpy((char *)all_out + (size_t)host * bytes, process->board + (size_t)host * QUOIT_NETWORK_CONTACT_BYTES,
               bytes);
    return true;
}

/* The endpoints with the descriptors of this process, which came in the order of theirs. */
static bool take_ends(struct quoit_proxy_message *start, const int *fds, uint32_t fd_count)
{
    uint32_t taken = start->body.start.has_network ? BOARD + 1 : MEMORY + 1;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        struct quoit_port_endpoint *end = &start->body.start.ends[side];
        if (end->fd_count > QUOIT_PORT_ENDPOINT_FDS || taken + end->fd_count > fd_count)
            return false;
        memcpy(end->fds, fds + taken, end->fd_count * sizeof fds[0]);
        taken += end->fd_count;
    }
    return taken == fd_count;
}

static bool map_all(struct process *process, const struct quoit_proxy_message *start, const int *fds)
{
    uint64_t bytes = process->layout.total_bytes;
    size_t board_bytes = quoit_board_bytes(process->layout.job.host_count);
    process->memory = quoit_map_file(fds[MEMORY], bytes, PROT_READ | PROT_WRITE);
    if (process->memory && start->body.start.has_network) {
        void *board = mmap(NULL, board_bytes, PROT_READ, MAP_SHARED, fds[BOARD], 0);
        process->board = board == MAP_FAILED ? NULL : board;
    }
    if (process->memory && (process->board || !start->body.start.has_network))
        return true;
    quoit_say("cannot map %llu MiB: %s", (unsigned long long)(bytes >> 20), strerror(errno));
    return false;
}

/* The text of a message, or NULL for "". */
static const char *text_or_null(char *text, size_t bytes)
{
    text[bytes - 1] = '\0';
    return text[0] ? text : NULL;
}

#define TEXT(field) text_or_null((field), sizeof(field))

static struct quoit_lane_network network_of(struct quoit_proxy_message *start, struct process *process)
{
    return (struct quoit_lane_network){.driver = TEXT(start->body.start.driver),
                                       .provider = TEXT(start->body.start.provider),
                                       .device = TEXT(start->body.start.devices),
                                       .ports = TEXT(start->body.start.network_ports),
                                       .tag = start->body.start.tag,
                                       .lost_limit_ns = start->body.start.network_limit_ns,
                                       .start_limit_ns = start->body.start.link_timeout_ns,
                                       .exchange = exchange,
                                       .on_lost = on_lost,
                                       .on_silence = on_silence,
                                       .sign_age_ns = sign_age_ns,
                                       .arg = process};
}

/* Frames of and to other supervisors */

static void on_message(void *arg, uint32_t source_host, uint32_t port, const void *payload, uint32_t bytes)
{
    struct packet packet = {0};
    (void)arg;
    if (port != PORT || bytes < HEAD_BYTES || bytes > sizeof packet)
        return;
    memcpy(&packet, payload, bytes);
    int wanted = quoit_control_bytes(packet.kind);
    if (wanted < 0 || bytes != HEAD_BYTES + (uint32_t)wanted)
        return;
    quoit_proxy_process_send_frame(QUOIT_PROGRAM_FD, source_host,
                                   quoit_control_may_be_lost(packet.kind) ? QUOIT_PROXY_OFFERED : QUOIT_PROXY_SURELY,
                                   (enum quoit_control_kind)packet.kind, &packet.body);
}

/* Whether the next message of the supervisor is the last frame, or it is gone. */
static bool is_ending(void)
{
    struct quoit_proxy_message next;
    ssize_t n = recv(QUOIT_PROGRAM_FD, &next, sizeof next, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 ||
           (n == (ssize_t)sizeof next && next.kind == QUOIT_PROXY_FRAME && next.body.frame.how == QUOIT_PROXY_LAST);
}

static bool is_more_waiting(void)
{
    struct pollfd supervisor = {.fd = QUOIT_PROGRAM_FD, .events = POLLIN};
    return poll(&supervisor, 1, 0) != 0;
}

/* Whether a frame that finds the queue full is tried again. */
static bool is_tried_again(enum quoit_proxy_how how, uint64_t deadline_ns)
{
    if (how == QUOIT_PROXY_LAST)
        return quoit_clock_now_ns() < deadline_ns;
    return how == QUOIT_PROXY_SURELY ? !is_ending() : !is_more_waiting();
}

/* The queue is short, and may be full for a while, or for ever when many hosts hang. */
static void send_to(const struct process *process, uint32_t host, const struct packet *packet, enum quoit_proxy_how how,
                    uint64_t deadline_ns)
{
    uint32_t bytes = HEAD_BYTES + (uint32_t)quoit_control_bytes(packet->kind);
    while (!atomic_load(&process->is_gone[host]) &&
           quoit_proxy_send(process->proxy, host, PORT, packet, bytes) == QUOIT_FULL &&
           is_tried_again(how, deadline_ns))
        quoit_clock_sleep_ns(RETRY_NS);
}

static void take_frame(const struct process *process, const struct quoit_proxy_message *message)
{
    const struct packet packet = {.kind = message->body.frame.kind, .body = message->body.frame.body};
    uint32_t host = message->body.frame.host;
    enum quoit_proxy_how how = (enum quoit_proxy_how)message->body.frame.how;
    bool is_last = how == QUOIT_PROXY_LAST;
    uint64_t deadline_ns = quoit_clock_now_ns() + LAST_NS;
    if (quoit_control_bytes(packet.kind) < 0)
        return;
    for (uint32_t to = 0; to < process->layout.job.host_count; to++)
        if (to != process->layout.host && (host == QUOIT_CONTROL_TO_ALL || to == host))
            send_to(process, to, &packet, how, deadline_ns);
    while (is_last && !quoit_proxy_has_sent(process->proxy) && quoit_clock_now_ns() < deadline_ns)
        quoit_clock_sleep_ns(RETRY_NS);
    if (is_last)
        _exit(0);
}

static void *converse(void *arg)
{
    const struct process *process = arg;
    struct quoit_proxy_message message;
    for (;;) {
        ssize_t n = recv(QUOIT_PROGRAM_FD, &message, sizeof message, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n != (ssize_t)sizeof message || message.magic != QUOIT_BOOT_MAGIC)
            _exit(0); /* the kernel ends this process with its supervisor, and may be about to */
        if (message.kind == QUOIT_PROXY_FRAME)
            take_frame(process, &message);
        while (message.kind == QUOIT_PROXY_FLUSH && !quoit_proxy_has_sent(process->proxy) && !is_ending())
            quoit_clock_sleep_ns(RETRY_NS);
        if (message.kind == QUOIT_PROXY_FLUSH || message.kind == QUOIT_PROXY_PING)
            send_message((struct quoit_proxy_message){.kind = message.kind});
    }
    return NULL;
}

/* Start */

/* With the thread that carries frames beside it, which may use the proxy as long as this process lives. */
static enum quoit_status serve_with_frames(struct process *process, const struct quoit_proxy_config *config)
{
    pthread_t thread;
    enum quoit_status status = quoit_proxy_open(config, &process->proxy);
    if (status != QUOIT_OK)
        return status;
    on_ready(process);
    if (pthread_create(&thread, NULL, converse, process) != 0)
        return QUOIT_NO_THREAD;
    if (quoit_proxy_serve(process->proxy, 0) != QUOIT_OK)
        _exit(1);
    pthread_join(thread, NULL);
    quoit_proxy_close(process->proxy);
    return QUOIT_OK;
}

static enum quoit_status run(struct process *process, struct quoit_proxy_message *start)
{
    struct quoit_lane_network network = network_of(start, process);
    struct quoit_proxy_config config = {
        .layout = &process->layout,
        .memory = process->memory,
        .network = start->body.start.has_network ? &network : NULL,
        .machine = start->body.start.machine,
        .link_timeout_ns = start->body.start.link_timeout_ns,
        .link_limit_ns = start->body.start.link_limit_ns,
        .dma_bytes = start->body.start.dma_bytes,
        .on_ready = on_ready,
        .on_cut_off = on_cut_off,
        .on_ready_arg = process,
        .on_message = process->carries_frames ? on_message : NULL,
        .on_message_arg = process,
    };
    const char *ports = TEXT(start->body.start.ports);
    const struct quoit_port_driver *driver = ports ? quoit_port_driver_find(ports) : NULL;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT && driver; side++) {
        config.is_down[side] = start->body.start.is_down[side] != 0;
        config.ports[side] = (struct quoit_port_config){.driver = driver,
                                                        .memory = {process->memory, process->layout.total_bytes},
                                                        .endpoint = &start->body.start.ends[side]};
    }
    return process->carries_frames ? serve_with_frames(process, &config) : quoit_proxy_run(&config);
}

/* START and its descriptors. False: who would send it has ended, or it was reported. */
static bool receive_start(struct quoit_proxy_message *message_out, struct quoit_ancillary *came)
{
    ssize_t n = quoit_receive_with_descriptors(QUOIT_PROGRAM_FD, message_out, sizeof *message_out, came, 0);
    bool is_whole = n == (ssize_t)sizeof *message_out && message_out->magic == QUOIT_BOOT_MAGIC;
    if (is_whole && message_out->kind == QUOIT_PROXY_LOAD) {
        message_out->body.driver[QUOIT_PROXY_TEXT_BYTES - 1] = '\0';
        quoit_net_load(message_out->body.driver);
        return receive_start(message_out, came);
    }
    if (is_whole && message_out->kind == QUOIT_PROXY_START && came->fd_count > 0)
        return true;
    if (n != 0)
        quoit_say("a message of another version of Quoit to the proxy of a host: is this the oshrun of its library? "
                  "[Q0311]");
    return false;
}

/* Serves the host of a START until the job ends. fds: what came with it. The exit status. */
static int serve(struct quoit_proxy_message *start, const int *fds, uint32_t fd_count)
{
    struct process process = {.carries_frames = start->body.start.carries_frames};
    char who[24];
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    if (process.carries_frames && !quoit_calls_check(QUOIT_CALLS_NETWORK)) /* oshrun has checked them for its own */
        return 1;
    if (process.carries_frames)
        quoit_program_ignore_signals();
    snprintf(who, sizeof who, "host%u", start->body.start.host);
    quoit_log_setup((enum quoit_log_level)start->body.start.log_level, who);
    if (!take_ends(start, fds, fd_count) ||
        quoit_layout_make(&start->body.start.job, start->body.start.host, &process.layout) != QUOIT_OK ||
        !map_all(&process, start, fds))
        return 1;
    bool is_virtual;
    if (quoit_virtual_open(&is_virtual) != QUOIT_OK)
        return 1;
    quoit_virtual_begin_services();
    quoit_step("proxy", process.layout.host, "start");
    send_message((struct quoit_proxy_message){.kind = QUOIT_PROXY_JOINS});
    enum quoit_status status = run(&process, start);
    quoit_step("proxy", process.layout.host, "stop");
    if (status == QUOIT_NO_THREAD)
        send_message((struct quoit_proxy_message){.kind = QUOIT_PROXY_FAILED, .body.status = status});
    return status == QUOIT_OK ? 0 : 1;
}

int quoit_serve_proxy(void)
{
    struct quoit_proxy_message start;
    int fds[QUOIT_PROXY_FDS_MAX];
    struct quoit_ancillary came = {.fds = fds, .fd_max = QUOIT_PROXY_FDS_MAX};
    if (!quoit_program_has_starter(QUOIT_PROXY_OPTION))
        return 2;
    prctl(PR_SET_NAME, "quoit-proxy");
    quoit_program_end_with_starter();
    quoit_step("proxy", QUOIT_STEP_ANY, "begin");
    if (!receive_start(&start, &came) || getppid() != (pid_t)start.body.start.starter)
        return 1;
    return serve(&start, fds, came.fd_count);
}
