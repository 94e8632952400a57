/* SPDX-License-Identifier: BSD-3-Clause */
/* ivshmem_link: a link of two machines on a QEMU that has no vfio-user, as the server of QEMU's ivshmem.
 *
 * What it is: each end is `-device ivshmem-doorbell`, which Linux drives by ntb_hw_ivshmem (ivshmem/). Registers are
 * words that both ends share (ivshmem/ivshmem_link.h); interrupts go from QEMU to QEMU. A driver writes which pages of
 * its machine a window of the peer leads to, and window_map.c, loaded before QEMU, puts them there: so the memory of
 * each machine must be a file. Behind pages that are translated, and without a link, writes vanish and reads give ones.
 *
 * The cable: SIGUSR1 pulls it, SIGUSR2 puts it back. It carries again when both drivers have seen the loss. SIGTERM:
 * prints how often translations changed and the link was lost, and ends.
 *
 * Threads: one.
 *
 * Use: ivshmem_link WINDOW_MIB SOCKET MEMORY_FILE MAP_SOCKET SOCKET MEMORY_FILE MAP_SOCKET
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "env/descriptors.h"
#include "ivshmem/ivshmem_link.h"
#include "local_socket.h"
#include "window_map.h"

#define PROTOCOL     0  /* of ivshmem */
#define MEMORY_COMES -1 /* in place of a peer's number */
#define PEERS        3
#define BEGIN_MS     2

struct end {
    int listening, connection, map_connection; /* the latter two: -1 without a machine */
    const char *map_path, *memory_path;
    char name[WINDOW_NAME_BYTES];
    int bar;        /* the file that QEMU maps first */
    bool is_placed; /* what both ends share stands there */
    int memory;
    uint64_t memory_bytes;
};

struct server {
    struct end ends[2];
    struct ivshmem_link *link;
    int link_file;
    int signals[PEERS][IVSHMEM_VECTORS]; /* eventfds */
    uint64_t window_bytes;
    bool is_pulled;
    unsigned change_count, loss_count;
};

static _Noreturn void die(const char *what)
{
    perror(what);
    exit(1);
}

static uint64_t link_bytes(void)
{
    return (sizeof(struct ivshmem_link) + IVSHMEM_PAGE_BYTES - 1) / IVSHMEM_PAGE_BYTES * IVSHMEM_PAGE_BYTES;
}

/* Windows */

/* file -1: nothing stands there. */
static void place(const struct end *end, uint64_t offset, uint64_t bytes, int file, uint64_t file_offset)
{
    struct window_map request = {.offset = offset, .bytes = bytes, .file_offset = file_offset};
    int32_t result = -EPIPE;
    memcpy(request.name, end->name, sizeof request.name);
    if (quoit_send_with_descriptors(end->map_connection, &request, sizeof request, &file, file >= 0, 0) !=
            sizeof request ||
        recv(end->map_connection, &result, sizeof result, MSG_WAITALL) != sizeof result || result != 0)
        fprintf(stderr, "ivshmem_link: mapping a window: %s\n", strerror(-result));
}

/* Pages that follow each other are placed at once. */
static void place_pages(const struct end *end, uint64_t at, const struct ivshmem_translation *to,
                        const struct end *owner)
{
    uint64_t count = __atomic_load_n(&to->page_count, __ATOMIC_ACQUIRE), run;
    for (uint64_t i = 0; i < count && i < IVSHMEM_PAGES_MAX; i += run) {
        uint64_t first = to->pages[i];
        for (run = 1; i + run < count && to->pages[i + run] == first + run * IVSHMEM_PAGE_BYTES;)
            run++;
        if (first + run * IVSHMEM_PAGE_BYTES <= owner->memory_bytes)
            place(end, at + i * IVSHMEM_PAGE_BYTES, run * IVSHMEM_PAGE_BYTES, owner->memory, first);
    }
}

static void place_windows(struct server *server, int index, bool carries)
{
    const struct end *end = &server->ends[index];
    if (!end->is_placed)
        return;
    for (uint32_t window = 0; window < IVSHMEM_WINDOWS; window++) {
        uint64_t at = (window + 1) * server->window_bytes;
        place(end, at, server->window_bytes, -1, 0);
        if (carries)
            place_pages(end, at, &server->link->ends[!index].translations[window], &server->ends[!index]);
    }
}

/* The link */

static void tell_drivers(const struct server *server)
{
    for (int i = 0; i < 2; i++)
        (void)!write(server->signals[i][IVSHMEM_VECTOR_LINK], &(uint64_t){1}, sizeof(uint64_t));
}

static bool both(const struct server *server, bool (*is)(const struct server *server, int index))
{
    return is(server, 0) && is(server, 1);
}

static bool is_ready(const struct server *server, int index)
{
    return server->ends[index].is_placed && __atomic_load_n(&server->link->ends[index].is_wanted, __ATOMIC_ACQUIRE);
}

static bool has_seen(const struct server *server, int index)
{
    return __atomic_load_n(&server->link->ends[index].seen_epoch, __ATOMIC_ACQUIRE) == server->link->epoch;
}

static void step_link(struct server *server)
{
    struct ivshmem_link *link = server->link;
    bool carries = !server->is_pulled && both(server, is_ready);
    if (carries == (link->is_up != 0) || (carries && !both(server, has_seen)))
        return;
    if (!carries) {
        __atomic_store_n(&link->is_up, 0, __ATOMIC_SEQ_CST);
        __atomic_store_n(&link->epoch, link->epoch + 1, __ATOMIC_RELEASE);
        server->loss_count++;
    }
    for (int i = 0; i < 2; i++)
        place_windows(server, i, carries);
    if (carries)
        __atomic_store_n(&link->is_up, 1, __ATOMIC_RELEASE);
    tell_drivers(server);
}

static void follow_translations(struct server *server)
{
    for (int i = 0; i < 2; i++) {
        struct ivshmem_end *end = &server->link->ends[i];
        uint32_t asked = __atomic_load_n(&end->asked, __ATOMIC_ACQUIRE);
        if (asked == end->answered)
            continue;
        place_windows(server, !i, server->link->is_up);
        server->change_count++;
        __atomic_store_n(&end->answered, asked, __ATOMIC_RELEASE);
    }
}

/* Machines come and go */

static void say(const struct end *end, int64_t number, int fd)
{
    if (quoit_send_with_descriptors(end->connection, &number, sizeof number, &fd, fd >= 0, 0) != sizeof number)
        perror("ivshmem_link: a machine");
}

static void come(struct server *server, int index)
{
    struct end *end = &server->ends[index];
    end->connection = accept4(end->listening, NULL, NULL, SOCK_CLOEXEC);
    if (end->connection < 0)
        die("accept");
    say(end, PROTOCOL, -1);
    say(end, index, -1);
    say(end, MEMORY_COMES, end->bar);
    for (int peer = 0; peer < PEERS; peer++)
        for (int vector = 0; vector < IVSHMEM_VECTORS; vector++)
            say(end, peer, server->signals[peer][vector]);
    end->map_connection = local_socket_connect(end->map_path);
    if (end->map_connection < 0)
        die(end->map_path);
}

/* False: QEMU has not mapped the BAR yet, about which it says nothing. It may wait for the server of another link
 * before, so nobody waits for it here. */
static bool place_link(const struct server *server, const struct end *end)
{
    struct window_map request = {.bytes = link_bytes()};
    int32_t result = -ENOENT;
    memcpy(request.name, end->name, sizeof request.name);
    return quoit_send_with_descriptors(end->map_connection, &request, sizeof request, &server->link_file, 1, 0) ==
               sizeof request &&
           recv(end->map_connection, &result, sizeof result, MSG_WAITALL) == sizeof result && result == 0;
}

/* How long to wait for what a machine has not done yet, in ms; -1: nothing. */
static int begin_machines(struct server *server)
{
    int wait_ms = -1;
    for (int i = 0; i < 2; i++) {
        struct end *end = &server->ends[i];
        if (end->connection < 0 || end->is_placed)
            continue;
        if (!place_link(server, end)) {
            wait_ms = BEGIN_MS;
            continue;
        }
        end->is_placed = true;
        end->memory = open(end->memory_path, O_RDWR | O_CLOEXEC); /* QEMU makes it before the BAR */
        if (end->memory < 0)
            die(end->memory_path);
        end->memory_bytes = (uint64_t)lseek(end->memory, 0, SEEK_END);
        place_windows(server, i, false);
    }
    return wait_ms;
}

/* A machine that is new has missed no loss. */
static void leave(struct server *server, int index)
{
    struct end *end = &server->ends[index];
    close(end->connection);
    close(end->map_connection);
    if (end->is_placed)
        close(end->memory);
    end->connection = end->map_connection = -1;
    end->is_placed = false;
    step_link(server);
    memset(&server->link->ends[index], 0, sizeof server->link->ends[index]);
    server->link->ends[index].seen_epoch = server->link->epoch;
}

static void serve(struct server *server, int index)
{
    char nothing[64];
    if (server->ends[index].connection < 0)
        come(server, index);
    else if (recv(server->ends[index].connection, nothing, sizeof nothing, 0) <= 0)
        leave(server, index);
}

static void take_signal(struct server *server, int signal_fd)
{
    struct signalfd_siginfo signal;
    if (read(signal_fd, &signal, sizeof signal) != sizeof signal)
        return;
    if (signal.ssi_signo == SIGTERM) {
        printf("server: %u changes of translations, lost %u times\n", server->change_count, server->loss_count);
        exit(0);
    }
    server->is_pulled = signal.ssi_signo == SIGUSR1;
}

static _Noreturn void run(struct server *server, int signal_fd)
{
    for (;;) {
        struct pollfd polls[3 + IVSHMEM_VECTORS] = {{.fd = signal_fd, .events = POLLIN}};
        for (int i = 0; i < 2; i++) {
            const struct end *end = &server->ends[i];
            polls[1 + i] =
                (struct pollfd){.fd = end->connection < 0 ? end->listening : end->connection, .events = POLLIN};
        }
        for (int i = 0; i < IVSHMEM_VECTORS; i++)
            polls[3 + i] = (struct pollfd){.fd = server->signals[IVSHMEM_SERVER][i], .events = POLLIN};
        if (poll(polls, 3 + IVSHMEM_VECTORS, begin_machines(server)) < 0)
            die("poll");
        if (polls[0].revents)
            take_signal(server, signal_fd);
        for (int i = 0; i < IVSHMEM_VECTORS; i++)
            if (polls[3 + i].revents)
                (void)!read(polls[3 + i].fd, &(uint64_t){0}, sizeof(uint64_t));
        for (int i = 0; i < 2; i++)
            if (polls[1 + i].revents)
                serve(server, i);
        follow_translations(server);
        step_link(server);
    }
}

/* Start */

static int make_file(const char *name, uint64_t bytes)
{
    int file = memfd_create(name, MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)bytes) != 0)
        die(name);
    return file;
}

static void open_end(struct server *server, int index, char **paths)
{
    struct end *end = &server->ends[index];
    *end = (struct end){.connection = -1, .map_connection = -1, .memory_path = paths[1], .map_path = paths[2]};
    snprintf(end->name, sizeof end->name, WINDOW_PREFIX "%d-%d-0", getpid(), index);
    end->bar = make_file(end->name, 4 * server->window_bytes);
    end->listening = local_socket_listen(paths[0]);
    if (end->listening < 0)
        die(paths[0]);
}

static void open_link(struct server *server)
{
    server->link_file = make_file("link", link_bytes());
    server->link = mmap(NULL, link_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, server->link_file, 0);
    if (server->link == MAP_FAILED)
        die("the link");
    server->link->window_bytes = server->window_bytes;
    __atomic_store_n(&server->link->magic, IVSHMEM_MAGIC, __ATOMIC_RELEASE);
    for (int peer = 0; peer < PEERS; peer++)
        for (int vector = 0; vector < IVSHMEM_VECTORS; vector++)
            if ((server->signals[peer][vector] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
                die("eventfd");
}

static int open_signals(void)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    sigaddset(&signals, SIGUSR2);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    return signalfd(-1, &signals, SFD_CLOEXEC);
}

int main(int argc, char **argv)
{
    static struct server server;
    if (argc != 8) {
        fprintf(stderr, "use: ivshmem_link WINDOW_MIB SOCKET MEMORY_FILE MAP_SOCKET SOCKET MEMORY_FILE MAP_SOCKET\n");
        return 2;
    }
    server.window_bytes = strtoull(argv[1], NULL, 10) << 20;
    signal(SIGPIPE, SIG_IGN);
    open_link(&server);
    for (int i = 0; i < 2; i++)
        open_end(&server, i, argv + 2 + 3 * i);
    run(&server, open_signals());
}
