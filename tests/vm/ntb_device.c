/* SPDX-License-Identifier: BSD-3-Clause */
/* ntb_device: a link of two NTB functions for virtual machines, as a vfio-user server.
 *
 * What it is: QEMU (10.1 or newer) attaches each end with `-device vfio-user-pci`, and Linux drives it by its own
 * driver of the chip (chip_amd.c, chip_intel.c), whose registers behave as that driver expects. Both ends may belong to
 * one machine.
 *
 * Windows: each access is a message, so a window has exactly what a bridge has: up to the limit of the translation it
 * is the peer's memory; behind it, and without one, writes vanish and reads give all ones. Messages of one machine stay
 * in order, as posted writes do. That is slow (about 10 us for a word): it is for what is true, not for rates. With a
 * second socket for each end windows are mappings of the peer's memory instead (window_map.c): accesses cost what a
 * mapping costs, and behind the limit pages may be read as what was written there.
 *
 * The cable: SIGUSR1 pulls it, SIGUSR2 puts it back. Both ends are told, as the chip does it; what either sends
 * meanwhile is lost; the registers of the peer are out of reach, so what they hold stays, whatever is done meanwhile.
 * The cable carries again when it is back and the drivers of both ends have taken note of the loss: one that both miss,
 * since their machines stand still for longer than it lasts, would lose data of a link that they take to be up.
 *
 * DMA: with --dma each end comes with the engine of a PLX switch (dma_engine.h), a function of its own that reaches
 * memory of its machine and the windows of every end of this link that the machine has.
 *
 * SIGTERM: prints for each end how often its machine read and wrote a register, and was interrupted; for each engine
 * what it has copied; for the link how many doorbells were rung and lost, and how often a window that was open led from
 * one address to another, by which the peer's writes may end anywhere; and ends.
 *
 * Use: ntb_device [OPTION...] WINDOW_MIB SOCKET SOCKET [MAP_SOCKET MAP_SOCKET]
 *   --chip NAME           amd, intel
 *   --lose N              every Nth ring of a doorbell does not arrive
 *   --dma SOCKET,SOCKET   an engine for each end
 *   --dma-late US         each of its descriptors takes that long, and its data arrive at the end of it
 *   --dma-fail N          every Nth descriptor fails, half done
 *   --map-late US         each piece of memory that an IOMMU maps for an end takes that long
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "env/descriptors.h"
#include "local_socket.h"
#include "ntb_device.h"

static const struct chip *const chips[] = {&chip_amd, &chip_intel};

static struct translation translation_of(const struct end *end, uint32_t window)
{
    struct translation found = end->link->is_cut ? (struct translation){0} : end->link->chip->translation(end, window);
    uint64_t most = end->link->window_bytes;
    return (struct translation){found.base, found.base == 0 ? 0 : found.bytes < most ? found.bytes : most};
}

/* Windows that QEMU maps */

static void tell_map(struct end *end, uint32_t window, uint64_t offset, uint64_t bytes, const struct map *map,
                     uint64_t in_map)
{
    struct window_map request = {.offset = offset, .bytes = bytes, .file_offset = map ? map->file_offset + in_map : 0};
    int32_t result = -EPIPE;
    memcpy(request.name, end->window_names[window], sizeof request.name);
    if (quoit_send_with_descriptors(end->map_connection, &request, sizeof request, map ? &map->file : NULL, map != NULL,
                                    0) != sizeof request ||
        recv(end->map_connection, &result, sizeof result, MSG_WAITALL) != sizeof result || result != 0)
        fprintf(stderr, "ntb_device: mapping a window: %s\n", strerror(-result));
}

static bool reach_map(struct end *end)
{
    if (!end->map_path || end->function.connection < 0)
        return false;
    if (end->map_connection >= 0)
        return true;
    end->map_connection = local_socket_connect(end->map_path);
    if (end->map_connection < 0)
        die(end->map_path);
    return true;
}

/* What of [at, last) of a window is the peer's memory now: one piece after the other, the rest nothing. What is beside
 * it stays: others may be writing there. */
static void map_range(struct end *end, uint32_t window, uint64_t at, uint64_t last)
{
    struct end *peer = peer_of(end);
    struct translation to = translation_of(end, window);
    tell_map(end, window, at, last - at, NULL, 0);
    last = last < to.bytes ? last : to.bytes;
    for (uint64_t bytes; at < last; at += bytes) {
        struct map *map = function_map_of(&peer->function, to.base + at, 1);
        uint64_t in_map = map ? to.base + at - map->address : 0;
        bytes = map ? map->bytes - in_map : PAGE_BYTES;
        bytes = bytes < last - at ? bytes : last - at;
        bytes = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
        if (map)
            tell_map(end, window, at, bytes, map, in_map);
    }
}

void device_map_window(struct end *end, uint32_t window)
{
    if (reach_map(end))
        map_range(end, window, 0, end->link->window_bytes);
}

void device_map_windows(struct end *end)
{
    for (uint32_t window = 0; window < WINDOWS; window++)
        device_map_window(end, window);
}

/* Memory of `end` came or goes: windows of the peer that lead there. */
static void map_again(struct end *end, uint64_t address, uint64_t bytes)
{
    struct end *peer = peer_of(end);
    for (uint32_t window = 0; window < WINDOWS; window++) {
        struct translation to = translation_of(peer, window);
        if (address >= to.base + to.bytes || to.base >= address + bytes || !reach_map(peer))
            continue;
        uint64_t at = address > to.base ? address - to.base : 0, last = address + bytes - to.base;
        uint64_t end_bytes = (to.bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
        map_range(peer, window, at, last < end_bytes ? last : end_bytes);
    }
}

/* The cable */

static void cut(struct link *link)
{
    link->is_cut = true;
    for (int i = 0; i < 2; i++) {
        struct end *end = &link->ends[i];
        device_map_windows(end);
        if (has_both_ends(link))
            end->is_loss_pending = link->chip->lose(end);
    }
}

void device_carry_again(struct link *link)
{
    if (!link->is_cut || link->is_pulled || link->ends[0].is_loss_pending || link->ends[1].is_loss_pending)
        return;
    link->is_cut = false;
    for (int i = 0; i < 2; i++) {
        device_map_windows(&link->ends[i]);
        if (has_both_ends(link))
            link->chip->restore(&link->ends[i]);
    }
}

/* Accesses */

bool device_carries_ring(struct link *link)
{
    bool is_lost = ++link->ring_count % (link->lose_every ? link->lose_every : UINT64_MAX) == 0;
    link->lost_count += is_lost;
    return !is_lost;
}

static void write_register(struct end *end, uint32_t at, uint32_t value, uint32_t mask)
{
    struct link *link = end->link;
    struct translation before[2 * WINDOWS];
    for (uint32_t i = 0; i < 2 * WINDOWS; i++)
        before[i] = link->chip->translation(&link->ends[i / WINDOWS], i % WINDOWS);
    link->chip->write(end, at, value, mask);
    for (uint32_t i = 0; i < 2 * WINDOWS; i++) {
        struct translation now = link->chip->translation(&link->ends[i / WINDOWS], i % WINDOWS);
        if (before[i].bytes != 0 && now.bytes != 0 && before[i].base != now.base)
            *(link->is_length_of_sender[i] ? &link->moved_of_sender_count : &link->moved_count) += 1;
        if (now.bytes != before[i].bytes)
            link->is_length_of_sender[i] =
                now.bytes != 0 && link->chip->has_sender_lengths && end == &link->ends[i / WINDOWS];
    }
}

/* Word by word. */
static void registers_access(struct end *end, uint64_t at, uint8_t *data, uint32_t bytes, bool is_write)
{
    for (uint32_t done = 0; done < bytes;) {
        uint32_t shift = (uint32_t)(at + done) % 4, now = bytes - done < 4 - shift ? bytes - done : 4 - shift;
        uint32_t word_at = (uint32_t)(at + done) - shift, value = 0, mask = 0;
        if (is_write) {
            memcpy((uint8_t *)&value + shift, data + done, now);
            memset((uint8_t *)&mask + shift, 0xff, now);
            write_register(end, word_at, value, mask);
        } else {
            value = end->link->chip->read(end, word_at);
            memcpy(data + done, (uint8_t *)&value + shift, now);
        }
        done += now;
    }
}

/* Each byte by itself, but aligned words whole. */
static void window_access(struct end *end, uint32_t window, uint64_t at, uint8_t *data, uint32_t bytes, bool is_write)
{
    struct translation through = translation_of(end, window);
    char *to = at + bytes <= through.bytes ? function_memory(&peer_of(end)->function, through.base + at, bytes) : NULL;
    if (to && bytes == 8 && at % 8 == 0) {
        if (is_write)
            __atomic_store_n((uint64_t *)(void *)to, get(data, 8), __ATOMIC_RELEASE);
        else
            put(data, __atomic_load_n((uint64_t *)(void *)to, __ATOMIC_ACQUIRE), 8);
        return;
    }
    if (to && is_write)
        memcpy(to, data, bytes);
    else if (to)
        memcpy(data, to, bytes);
    else if (bytes > 1)
        for (uint32_t i = 0; i < bytes; i++)
            window_access(end, window, at + i, data + i, 1, is_write);
    else if (!is_write)
        *data = 0xff;
}

/* Ends come and go */

static void end_access(struct function *function, uint32_t bar, uint64_t at, uint8_t *data, uint32_t bytes,
                       bool is_write)
{
    struct end *end = (struct end *)function;
    if (bar == 0)
        registers_access(end, at, data, bytes, is_write);
    else
        window_access(end, (bar - 2) / 2, at, data, bytes, is_write);
}

static void end_config_read(struct function *function, uint64_t at, uint32_t bytes)
{
    struct end *end = (struct end *)function;
    if (end->link->chip->config_read)
        end->link->chip->config_read(end, at, bytes);
}

static void end_reset(struct function *function)
{
    struct end *end = (struct end *)function;
    function_config(function, end->link->chip->id, 0x06800000); /* a bridge of another kind */
    put(function->config + 0x18, 0xc, 4);                       /* BAR 2 and 4: 64 bits, prefetchable; BAR 0: 32 bits */
    put(function->config + 0x20, 0xc, 4);
    memset(end->registers, 0, sizeof end->registers);
    end->is_loss_pending = false;
    end->bell = 0;
    end->bell_mask = UINT64_MAX;
    end->link->chip->reset(end);
}

static void end_come(struct function *function)
{
    struct end *end = (struct end *)function;
    if (!end->link->is_cut)
        end->link->chip->come(end);
    device_carry_again(end->link); /* the loss is no longer pending */
}

static void end_leave(struct function *function)
{
    struct end *end = (struct end *)function;
    if (end->map_connection >= 0)
        close(end->map_connection);
    end->map_connection = -1;
    end->link->chip->leave(end);
    device_map_windows(peer_of(end));
}

static void end_memory_changed(struct function *function, uint64_t address, uint64_t bytes)
{
    map_again((struct end *)function, address, bytes);
}

/* The files that QEMU maps first; window_map puts the peer's memory there. */
static void make_windows(struct link *link, struct end *end, const char *map_path)
{
    end->map_path = map_path;
    for (uint32_t window = 0; window < WINDOWS; window++) {
        uint32_t bar = 2 + 2 * window;
        char *name = end->window_names[window];
        int file;
        end->function.bar_bytes[bar] = link->window_bytes;
        if (!map_path)
            continue;
        snprintf(name, WINDOW_NAME_BYTES, WINDOW_PREFIX "%d-%d-%u", getpid(), (int)(end - link->ends), window);
        file = memfd_create(name, MFD_CLOEXEC);
        if (file < 0 || ftruncate(file, (off_t)link->window_bytes) != 0)
            die("a window");
        end->function.bar_files[bar] = file;
    }
}

static void end_open(struct link *link, int index, const char *path, const char *map_path)
{
    static const struct function_ops ops = {.reset = end_reset,
                                            .come = end_come,
                                            .leave = end_leave,
                                            .access = end_access,
                                            .config_read = end_config_read,
                                            .memory_changed = end_memory_changed};
    struct end *end = &link->ends[index];
    end->link = link;
    end->map_connection = -1;
    function_open(&end->function, &ops, path, link->chip->vector_count);
    end->function.bar_bytes[0] = link->chip->register_bytes;
    make_windows(link, end, map_path);
}

/* What an engine finds at an address of a window of its machine: memory of the peer, or nothing. */
static bool window_run(void *context, struct dma_engine *engine, uint64_t address, struct dma_run *run_out)
{
    struct link *link = context;
    for (uint32_t i = 0; i < 2 * WINDOWS; i++) {
        struct end *end = &link->ends[i / WINDOWS];
        uint32_t bar = 2 + 2 * (i % WINDOWS);
        uint64_t start = function_bar(&end->function, bar), at = address - start;
        if (!function_is_same_machine(&engine->function, &end->function) || start == 0 || address < start ||
            at >= link->window_bytes)
            continue;
        struct translation to = translation_of(end, i % WINDOWS);
        struct map *map = at < to.bytes ? function_map_of(&peer_of(end)->function, to.base + at, 1) : NULL;
        if (map) {
            uint64_t in_map = to.base + at - map->address, left = map->bytes - in_map;
            *run_out = (struct dma_run){map->base + in_map, left < to.bytes - at ? left : to.bytes - at};
        } else
            *run_out = (struct dma_run){NULL, PAGE_BYTES - at % PAGE_BYTES};
        return true;
    }
    return false;
}

static _Noreturn void end_by_signal(const struct link *link)
{
    for (int i = 0; i < 2; i++) {
        const struct function *function = &link->ends[i].function;
        printf("end %d: %llu reads and %llu writes of registers, %llu interrupts\n", i,
               (unsigned long long)function->read_count, (unsigned long long)function->write_count,
               (unsigned long long)function->interrupt_count);
    }
    for (int i = 0; i < 2 && link->has_engines; i++)
        printf("engine %d: %llu descriptors, %llu bytes, %llu failed\n", i,
               (unsigned long long)link->engines[i].done_count, (unsigned long long)link->engines[i].done_bytes,
               (unsigned long long)link->engines[i].failed_count);
    printf("link: %llu rings, %llu lost; %llu times an open window moved, %llu with a length of its sender\n",
           (unsigned long long)link->ring_count, (unsigned long long)link->lost_count,
           (unsigned long long)link->moved_count, (unsigned long long)link->moved_of_sender_count);
    exit(0);
}

static void take_signal(struct link *link, int signal_fd)
{
    struct signalfd_siginfo signal;
    if (read(signal_fd, &signal, sizeof signal) != sizeof signal)
        return;
    if (signal.ssi_signo == SIGTERM)
        end_by_signal(link);
    link->is_pulled = signal.ssi_signo == SIGUSR1;
    if (link->is_pulled)
        cut(link);
    else
        device_carry_again(link);
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

static void open_engines(struct link *link, char *paths, uint64_t late_ns, uint32_t fail_every)
{
    char *second = strchr(paths, ',');
    if (!second) {
        fprintf(stderr, "ntb_device: --dma is %s, but two sockets are needed: SOCKET,SOCKET\n", paths);
        exit(2);
    }
    *second++ = 0;
    link->has_engines = true;
    for (int i = 0; i < 2; i++) {
        struct dma_engine *engine = &link->engines[i];
        engine->late_ns = late_ns;
        engine->fail_every = fail_every;
        engine->window = window_run;
        engine->context = link;
        dma_engine_open(engine, i == 0 ? paths : second);
    }
}

static const struct chip *find_chip(const char *name)
{
    for (size_t i = 0; i < sizeof chips / sizeof *chips; i++)
        if (strcmp(chips[i]->name, name) == 0)
            return chips[i];
    fprintf(stderr, "ntb_device: --chip is %s, but there are amd and intel\n", name);
    exit(2);
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* What is due is done; until the next of it, in ms. */
static int step_engines(struct link *link)
{
    int64_t now = now_ns(), wait_ns = -1;
    for (int i = 0; i < 2 && link->has_engines; i++) {
        dma_engine_step(&link->engines[i], now);
        int64_t due = dma_engine_due_ns(&link->engines[i]);
        if (due >= 0 && (wait_ns < 0 || due - now < wait_ns))
            wait_ns = due > now ? due - now : 0;
    }
    return wait_ns < 0 ? -1 : (int)((wait_ns + 999999) / 1000000);
}

static _Noreturn void run(struct link *link, int signal_fd)
{
    struct function *functions[] = {&link->ends[0].function, &link->ends[1].function, &link->engines[0].function,
                                    &link->engines[1].function};
    nfds_t count = link->has_engines ? 4 : 2;
    for (;;) {
        struct pollfd polls[5];
        for (nfds_t i = 0; i < count; i++)
            polls[i] = (struct pollfd){.fd = function_fd(functions[i]), .events = POLLIN};
        polls[count] = (struct pollfd){.fd = signal_fd, .events = POLLIN};
        if (poll(polls, count + 1, step_engines(link)) < 0)
            die("poll");
        for (nfds_t i = 0; i < count; i++)
            if (polls[i].revents)
                function_serve(functions[i]);
        if (polls[count].revents)
            take_signal(link, signal_fd);
    }
}

int main(int argc, char **argv)
{
    static struct link link = {.chip = &chip_amd};
    static const struct option options[] = {{"chip", required_argument, NULL, 'c'},
                                            {"lose", required_argument, NULL, 'r'},
                                            {"dma", required_argument, NULL, 'd'},
                                            {"dma-late", required_argument, NULL, 'l'},
                                            {"dma-fail", required_argument, NULL, 'f'},
                                            {"map-late", required_argument, NULL, 'm'},
                                            {0}};
    char *engines = NULL;
    uint64_t late_us = 0;
    uint32_t fail_every = 0, map_late_us = 0;
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'c')
            link.chip = find_chip(optarg);
        else if (option == 'r')
            link.lose_every = (uint32_t)strtoul(optarg, NULL, 10);
        else if (option == 'd')
            engines = optarg;
        else if (option == 'l')
            late_us = strtoull(optarg, NULL, 10);
        else if (option == 'f')
            fail_every = (uint32_t)strtoul(optarg, NULL, 10);
        else if (option == 'm')
            map_late_us = (uint32_t)strtoul(optarg, NULL, 10);
        else
            return 2;
    }
    argc -= optind;
    argv += optind;
    if (argc != 3 && argc != 5) {
        fprintf(stderr, "use: ntb_device [--chip amd|intel] [--lose N] [--dma SOCKET,SOCKET [--dma-late US] "
                        "[--dma-fail N]] [--map-late US] "
                        "WINDOW_MIB SOCKET SOCKET [MAP_SOCKET MAP_SOCKET]\n");
        return 2;
    }
    link.window_bytes = strtoull(argv[0], NULL, 10) << 20;
    for (int i = 0; i < 2; i++) {
        end_open(&link, i, argv[1 + i], argc == 5 ? argv[3 + i] : NULL);
        link.ends[i].function.map_late_us = map_late_us;
    }
    if (engines)
        open_engines(&link, engines, late_us * 1000, fail_every);
    run(&link, open_signals());
}
