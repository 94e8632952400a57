/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/proxy.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "base/step.h"
#include "env/clock.h"
#include "env/descriptors.h"
#include "env/map.h"
#include "port/driver.h"
#include "proxy/proxy.h"
#include "virtual/clock.h"

/* Descriptors of START. */
enum { MEMORY, BOARD };

struct process {
    struct quoit_layout layout;
    void *memory;
    const char *board; /* NULL: no network */
    bool has_lost;     /* a host, which ends the job */
};

static void send_message(struct quoit_proxy_message message)
{
    message.magic = QUOIT_BOOT_MAGIC;
    quoit_proxy_process_say(QUOIT_PROGRAM_FD, &message);
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
    if (!process->has_lost)
        send_message((struct quoit_proxy_message){.kind = QUOIT_PROXY_LOST, .body.lost = {host, is_silent}});
    process->has_lost = true;
}

static void on_silence(void *arg, uint32_t host, enum quoit_net_silence silence, uint64_t silent_ns, uint64_t dark_ns)
{
    const struct process *process = arg;
    quoit_serve_silence(process->layout.host, host, silence, silent_ns, dark_ns);
}

static uint64_t sign_age_ns(void *arg, uint32_t host)
{
    const struct process *process = arg;
    const _Atomic uint64_t *signs = quoit_proxy_board_signs(process->board, process->layout.job.host_count);
    uint64_t sign_ns = atomic_load_explicit(&signs[host], memory_order_relaxed), now_ns = quoit_clock_now_ns();
    if (sign_ns == 0)
        return UINT64_MAX;
    return sign_ns < now_ns ? now_ns - sign_ns : 0;
}

/* Waits without a limit: oshrun knows which host has not sent its contact, and ends the job. */
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
        return false; /* oshrun has ended */
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
    size_t board_bytes = quoit_proxy_board_bytes(process->layout.job.host_count);
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

struct quoit_lane_network quoit_serve_network(struct quoit_proxy_message *start)
{
    return (struct quoit_lane_network){.driver = TEXT(start->body.start.driver),
                                       .provider = TEXT(start->body.start.provider),
                                       .device = TEXT(start->body.start.devices),
                                       .ports = TEXT(start->body.start.network_ports),
                                       .tag = start->body.start.tag,
                                       .lost_limit_ns = start->body.start.network_limit_ns,
                                       .start_limit_ns = start->body.start.link_timeout_ns};
}

void quoit_serve_silence(uint32_t by, uint32_t host, enum quoit_net_silence silence, uint64_t silent_ns,
                         uint64_t dark_ns)
{
    struct quoit_proxy_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_PROXY_SILENCE};
    message.body.word.host = by;
    message.body.word.is.silence =
        (struct quoit_proxy_silence){.host = host, .silence = silence, .silent_ns = silent_ns, .dark_ns = dark_ns};
    quoit_proxy_process_offer(QUOIT_PROGRAM_FD, &message);
}

static enum quoit_status run(struct process *process, struct quoit_proxy_message *start)
{
    struct quoit_lane_network network = quoit_serve_network(start);
    network.exchange = exchange;
    network.on_lost = on_lost;
    network.on_silence = on_silence;
    network.sign_age_ns = sign_age_ns;
    network.arg = process;
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
    };
    const char *ports = TEXT(start->body.start.ports);
    const struct quoit_port_driver *driver = ports ? quoit_port_driver_find(ports) : NULL;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT && driver; side++) {
        config.is_down[side] = start->body.start.is_down[side] != 0;
        config.ports[side] = (struct quoit_port_config){.driver = driver,
                                                        .memory = {process->memory, process->layout.total_bytes},
                                                        .endpoint = &start->body.start.ends[side]};
    }
    return quoit_proxy_run(&config);
}

int quoit_serve_proxy(struct quoit_proxy_message *start, const int *fds, uint32_t fd_count)
{
    struct process process = {0};
    char who[24];
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
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
