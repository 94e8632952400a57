/* SPDX-License-Identifier: BSD-3-Clause */
/* ntb_device: a link of two AMD NTB functions (1022:148b) for virtual machines, as a vfio-user server.
 *
 * What it is: QEMU (10.1 or newer) attaches each end with `-device vfio-user-pci`, and Linux drives it by its own
 * ntb_hw_amd. Registers behave as that driver expects: 16 scratchpads that both ends share, 16 sticky doorbells with a
 * vector each, XLAT and LMT of an end for its outbound windows, the ready bit of SIDEINFO, and the events of link-up
 * and link-down. Both ends may belong to one machine.
 *
 * Windows: each access is a message, so a window has exactly what a bridge has: up to the limit of the translation it
 * is the peer's memory; behind it, and without one, writes vanish and reads give all ones. Messages of one machine stay
 * in order, as posted writes do. That is slow (about 10 us for a word): it is for what is true, not for rates. With a
 * second socket for each end windows are mappings of the peer's memory instead (window_map.c): accesses cost what a
 * mapping costs, and behind the limit pages may be read as what was written there.
 *
 * The cable: SIGUSR1 pulls it, SIGUSR2 puts it back. Both ends get the event; what either sends meanwhile is lost; the
 * registers of the peer are out of reach, so the translations of before stay, whatever is done meanwhile. The cable
 * carries again when it is back and the drivers of both ends have acknowledged the loss: one that both miss, since
 * their machines stand still for longer than it lasts, would lose data of a link that they take to be up.
 *
 * The ready bit of an end (SIDEINFO) is written by its own machine alone. ntb_hw_amd of the primary side clears that of
 * the secondary whenever it is asked for the link between the return and the event of it, and nobody sets it again.
 *
 * DMA: with --dma each end comes with the engine of a PLX switch (dma_engine.h), a function of its own that reaches
 * memory of its machine and the windows of every end of this link that the machine has.
 *
 * SIGTERM: prints for each end how often its machine read and wrote a register, and was interrupted; for each engine
 * what it has copied; and ends.
 *
 * Use: ntb_device [OPTION...] WINDOW_MIB SOCKET SOCKET [MAP_SOCKET MAP_SOCKET]
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
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "dma_engine.h"
#include "env/descriptors.h"
#include "vfio_user.h"
#include "window_map.h"

#define VECTORS       24u
#define VECTOR_EVENTS 16u    /* behind those of the doorbells */
#define WINDOWS       2      /* BAR 2 and 4 */
#define FILE_FROM     0x200u /* the register file of an end; that of the peer stands 0x400 above it */
#define FILE_TO       0x600u
#define SCRATCHPADS   0x210u
#define SIDEINFO      0x408u
#define LIMIT(bar)    (0x418u + ((bar)-2) * 4)
#define XLAT(bar)     (0x438u + ((bar)-2) * 4)
#define DBREQ         0x454u
#define DBMASK        0x45cu
#define DBSTAT        0x460u
#define INTMASK       0x470u
#define INTSTAT       0x474u
#define SMUACK        0x4a0u
#define EVENT_UP      0x20u
#define EVENT_DOWN    0x40u

struct link;

struct end {
    struct function function;
    struct link *link;
    uint32_t registers[(FILE_TO - FILE_FROM) / 4];
    uint32_t bell, bell_mask, events, event_mask;
    bool is_loss_pending; /* its driver has not acknowledged the loss of the cable */
    const char *map_path; /* of window_map; NULL: each access is a message */
    int map_connection;   /* -1: none */
    char window_names[WINDOWS][WINDOW_NAME_BYTES];
};

struct link {
    struct end ends[2];
    struct dma_engine engines[2];
    bool has_engines;
    uint32_t scratchpads[16];
    uint64_t window_bytes;
    bool is_pulled;
    bool is_cut; /* carries nothing: pulled, or put back while the loss is pending */
};

static struct end *peer_of(struct link *link, struct end *end)
{
    return &link->ends[end == &link->ends[0]];
}

/* Interrupts */

static void ring(struct end *end, uint32_t bits)
{
    uint32_t fresh = bits & ~end->bell & ~end->bell_mask;
    end->bell |= bits;
    for (uint32_t i = 0; i < 16; i++)
        if (fresh >> i & 1)
            function_fire(&end->function, i);
}

static void unmask(struct end *end, uint32_t mask)
{
    uint32_t due = end->bell & end->bell_mask & ~mask;
    end->bell_mask = mask;
    for (uint32_t i = 0; i < 16; i++)
        if (due >> i & 1)
            function_fire(&end->function, i);
}

static void announce(struct end *end, uint32_t event)
{
    end->events = (end->events & ~(EVENT_UP | EVENT_DOWN)) | event;
    if ((end->event_mask & event) == 0)
        function_fire(&end->function, VECTOR_EVENTS);
}

static uint64_t wide(struct end *end, uint32_t at)
{
    return end->registers[(at - FILE_FROM) / 4] | (uint64_t)end->registers[(at - FILE_FROM) / 4 + 1] << 32;
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
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!end->map_path || end->function.connection < 0)
        return false;
    if (end->map_connection >= 0)
        return true;
    end->map_connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", end->map_path);
    if (connect(end->map_connection, (struct sockaddr *)&address, sizeof address) != 0)
        die(end->map_path);
    return true;
}

/* What of a window is the peer's memory now: one piece after the other, the rest nothing. */
static void map_window(struct link *link, struct end *end, uint32_t window)
{
    struct end *peer = peer_of(link, end);
    uint64_t base = wide(end, XLAT(2 + 2 * window)), limit = wide(end, LIMIT(2 + 2 * window));
    if (!reach_map(end))
        return;
    tell_map(end, window, 0, link->window_bytes, NULL, 0);
    if (link->is_cut || !base)
        return;
    limit = limit < link->window_bytes ? limit : link->window_bytes;
    for (uint64_t at = 0, bytes; at < limit; at += bytes) {
        struct map *map = function_map_of(&peer->function, base + at, 1);
        uint64_t in_map = map ? base + at - map->address : 0;
        bytes = map ? map->bytes - in_map : PAGE_BYTES;
        bytes = bytes < limit - at ? bytes : limit - at;
        bytes = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
        if (map)
            tell_map(end, window, at, bytes, map, in_map);
    }
}

static void map_windows(struct link *link, struct end *end)
{
    for (uint32_t window = 0; window < WINDOWS; window++)
        map_window(link, end, window);
}

/* Memory of `end` came or goes: windows of the peer that lead there. */
static void map_again(struct link *link, struct end *end, uint64_t address, uint64_t bytes)
{
    struct end *peer = peer_of(link, end);
    for (uint32_t window = 0; window < WINDOWS; window++) {
        uint64_t base = wide(peer, XLAT(2 + 2 * window)), limit = wide(peer, LIMIT(2 + 2 * window));
        if (base && address < base + limit && base < address + bytes)
            map_window(link, peer, window);
    }
}

/* The cable */

static void forget_translations(struct end *end)
{
    for (uint32_t at = LIMIT(2); at < XLAT(4) + 8; at += 4)
        end->registers[(at - FILE_FROM) / 4] = 0;
}

static bool has_both_ends(const struct link *link)
{
    return link->ends[0].function.connection >= 0 && link->ends[1].function.connection >= 0;
}

static void cut(struct link *link)
{
    link->is_cut = true;
    for (int i = 0; i < 2; i++) {
        struct end *end = &link->ends[i];
        map_windows(link, end);
        if (!has_both_ends(link))
            continue;
        end->is_loss_pending = (end->event_mask & EVENT_DOWN) == 0;
        announce(end, EVENT_DOWN);
    }
}

static void carry_again(struct link *link)
{
    if (!link->is_cut || link->is_pulled || link->ends[0].is_loss_pending || link->ends[1].is_loss_pending)
        return;
    link->is_cut = false;
    for (int i = 0; i < 2; i++) {
        map_windows(link, &link->ends[i]);
        if (has_both_ends(link))
            announce(&link->ends[i], EVENT_UP);
    }
}

/* Registers */

static uint32_t register_read(struct link *link, struct end *end, uint32_t at)
{
    if (at >= SCRATCHPADS && at < SCRATCHPADS + sizeof link->scratchpads)
        return link->scratchpads[(at - SCRATCHPADS) / 4];
    switch (at) {
    case DBSTAT:
        return end->bell;
    case DBMASK:
        return end->bell_mask;
    case INTMASK:
        return end->event_mask;
    case INTSTAT:
        return end->events;
    default:
        return end->registers[(at - FILE_FROM) / 4];
    }
}

static void register_write(struct link *link, struct end *end, uint32_t at, uint32_t value)
{
    if (at >= SCRATCHPADS && at < SCRATCHPADS + sizeof link->scratchpads) {
        if (!link->is_cut)
            link->scratchpads[(at - SCRATCHPADS) / 4] = value;
        return;
    }
    switch (at) {
    case DBREQ:
        if (!link->is_cut)
            ring(peer_of(link, end), value & 0xffff);
        break;
    case DBSTAT:
        end->bell &= ~value;
        break;
    case DBMASK:
        unmask(end, value & 0xffff);
        break;
    case INTMASK:
        end->event_mask = value;
        break;
    case INTSTAT:
        end->events &= ~value;
        break;
    case SMUACK:
        if (value & EVENT_DOWN)
            end->is_loss_pending = false;
        carry_again(link);
        break;
    default:
        end->registers[(at - FILE_FROM) / 4] = value;
        for (uint32_t window = 0; window < WINDOWS; window++)
            if (at / 8 == XLAT(2 + 2 * window) / 8 || at / 8 == LIMIT(2 + 2 * window) / 8)
                map_window(link, end, window); /* and not the other one, which may be in use */
    }
}

/* Whose register file `at` of BAR 0 is in; NULL: none that answers. */
static struct end *file_at(struct link *link, struct end *end, uint64_t *at, bool is_write)
{
    if (*at >= FILE_FROM && *at < FILE_TO)
        return end;
    if (*at < FILE_TO || *at >= FILE_TO + FILE_TO - FILE_FROM)
        return NULL;
    *at -= FILE_TO - FILE_FROM;
    bool is_protected = is_write && *at / 4 == SIDEINFO / 4;
    return link->is_cut || is_protected ? NULL : peer_of(link, end);
}

static void registers_access(struct link *link, struct end *end, uint64_t at, uint8_t *data, uint32_t bytes,
                             bool is_write)
{
    struct end *owner = file_at(link, end, &at, is_write);
    for (uint32_t done = 0; done < bytes;) {
        uint32_t shift = (uint32_t)(at + done) % 4, now = bytes - done < 4 - shift ? bytes - done : 4 - shift;
        uint32_t word_at = (uint32_t)(at + done) - shift;
        /* Of these a part may be written: the rest of the word is not what was read. */
        bool is_one_shot = word_at == DBREQ || word_at == DBSTAT || word_at == INTSTAT;
        uint32_t word = !owner ? UINT32_MAX : is_write && is_one_shot ? 0 : register_read(link, owner, word_at);
        if (is_write)
            memcpy((uint8_t *)&word + shift, data + done, now);
        else
            memcpy(data + done, (uint8_t *)&word + shift, now);
        if (is_write && owner)
            register_write(link, owner, word_at, word);
        done += now;
    }
}

/* Each byte by itself, but aligned words whole. */
static void window_access(struct link *link, struct end *end, uint32_t bar, uint64_t at, uint8_t *data, uint32_t bytes,
                          bool is_write)
{
    uint64_t base = wide(end, XLAT(bar)), limit = wide(end, LIMIT(bar));
    char *to = base && !link->is_cut && at + bytes <= limit
                   ? function_memory(&peer_of(link, end)->function, base + at, bytes)
                   : NULL;
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
            window_access(link, end, bar, at + i, data + i, 1, is_write);
    else if (!is_write)
        *data = 0xff;
}

/* Ends come and go */

static void end_access(struct function *function, uint32_t bar, uint64_t at, uint8_t *data, uint32_t bytes,
                       bool is_write)
{
    struct end *end = (struct end *)function;
    if (bar == 0)
        registers_access(end->link, end, at, data, bytes, is_write);
    else
        window_access(end->link, end, bar, at, data, bytes, is_write);
}

static void end_reset(struct function *function)
{
    struct end *end = (struct end *)function;
    function_config(function, 0x148b1022, 0x06800000); /* a bridge of another kind */
    put(function->config + 0x18, 0xc, 4);              /* BAR 2 and 4: 64 bits, prefetchable; BAR 0: 32 bits */
    put(function->config + 0x20, 0xc, 4);
    memset(end->registers, 0, sizeof end->registers);
    end->registers[(SIDEINFO - FILE_FROM) / 4] = end == &end->link->ends[1];
    end->is_loss_pending = false;
    end->bell = 0;
    end->bell_mask = 0xffff;
    end->events = 0;
    end->event_mask = 0x7f;
}

static void end_come(struct function *function)
{
    struct end *end = (struct end *)function;
    if (!end->link->is_cut)
        announce(peer_of(end->link, end), EVENT_UP);
    carry_again(end->link); /* the loss is no longer pending */
}

static void end_leave(struct function *function)
{
    struct end *end = (struct end *)function, *peer = peer_of(end->link, end);
    if (end->map_connection >= 0)
        close(end->map_connection);
    end->map_connection = -1;
    forget_translations(peer);
    map_windows(end->link, peer);
    announce(peer, EVENT_DOWN);
}

static void end_memory_changed(struct function *function, uint64_t address, uint64_t bytes)
{
    struct end *end = (struct end *)function;
    map_again(end->link, end, address, bytes);
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
                                            .memory_changed = end_memory_changed};
    struct end *end = &link->ends[index];
    end->link = link;
    end->map_connection = -1;
    function_open(&end->function, &ops, path, VECTORS);
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
        uint64_t base = wide(end, XLAT(bar)), limit = wide(end, LIMIT(bar));
        bool is_translated = base && !link->is_cut && at < limit;
        struct map *map = is_translated ? function_map_of(&peer_of(link, end)->function, base + at, 1) : NULL;
        if (map) {
            uint64_t in_map = base + at - map->address, left = map->bytes - in_map;
            *run_out = (struct dma_run){map->base + in_map, left < limit - at ? left : limit - at};
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
        carry_again(link);
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
    static struct link link;
    static const struct option options[] = {{"dma", required_argument, NULL, 'd'},
                                            {"dma-late", required_argument, NULL, 'l'},
                                            {"dma-fail", required_argument, NULL, 'f'},
                                            {"map-late", required_argument, NULL, 'm'},
                                            {0}};
    char *engines = NULL;
    uint64_t late_us = 0;
    uint32_t fail_every = 0, map_late_us = 0;
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'd')
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
        fprintf(stderr,
                "use: ntb_device [--dma SOCKET,SOCKET [--dma-late US] [--dma-fail N]] [--map-late US] WINDOW_MIB "
                "SOCKET SOCKET [MAP_SOCKET MAP_SOCKET]\n");
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
