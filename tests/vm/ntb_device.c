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
 * The cable: SIGUSR1 pulls it, SIGUSR2 puts it back. Both ends get the event; what either sends meanwhile is lost, and
 * the translations are. An end reaches the registers of the other one again when its driver has acknowledged the
 * return: ntb_hw_amd of the primary side, until it knows of that, clears the ready bit of the secondary, which nobody
 * sets again.
 *
 * SIGTERM: prints for each end how often its machine read and wrote a register, and was interrupted, and ends.
 *
 * Use: ntb_device WINDOW_MIB SOCKET SOCKET [MAP_SOCKET MAP_SOCKET]
 */
#include <errno.h>
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
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "window_map.h"

#define VECTORS       24u
#define VECTOR_EVENTS 16u /* behind those of the doorbells */
#define MAPS_MAX      16384u
#define FILES_MAX     16
#define WINDOWS       2 /* BAR 2 and 4 */
#define PAGE_BYTES    4096u
#define FDS_MAX       16u
#define BODY_MAX      (1u << 16)
#define CONFIG_BYTES  4096u
#define FILE_FROM     0x200u /* the register file of an end; that of the peer stands 0x400 above it */
#define FILE_TO       0x600u
#define BAR0_BYTES    0x4000u
#define MSIX_TABLE    0x2000u
#define MSIX_PENDING  0x3000u
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

enum command { VERSION = 1, DMA_MAP, DMA_UNMAP, GET_INFO, GET_REGION, GET_IRQ = 7, SET_IRQS, READ, WRITE, RESET = 13 };
#define FLAG_REPLY    1u
#define FLAG_NO_REPLY 0x10u
#define FLAG_ERROR    0x20u

struct header {
    uint16_t id, command;
    uint32_t bytes, flags, error;
};

/* Memory of the machine, by the addresses at which the device sees it. */
struct map {
    uint64_t address, bytes;
    char *base; /* NULL: unused */
    int file;   /* and where it lies there */
    uint64_t file_offset;
};

/* A file of the machine's memory; many maps lie in one. */
struct memory_file {
    ino_t inode;
    int fd;
};

struct end {
    int listener, connection;
    uint8_t config[CONFIG_BYTES];
    uint32_t registers[(FILE_TO - FILE_FROM) / 4];
    uint32_t bell, bell_mask, events, event_mask;
    bool is_deaf;                                      /* the registers of the peer are out of reach */
    uint64_t read_count, write_count, interrupt_count; /* of registers, by its machine */
    int vectors[VECTORS];
    struct map maps[MAPS_MAX];
    struct memory_file files[FILES_MAX];
    const char *map_path; /* of window_map; NULL: each access is a message */
    int map_connection;   /* -1: none */
    int window_files[WINDOWS];
    char window_names[WINDOWS][WINDOW_NAME_BYTES];
};

struct link {
    struct end ends[2];
    uint32_t scratchpads[16];
    uint64_t window_bytes;
    bool is_cut;
};

struct message {
    struct header header;
    uint8_t body[BODY_MAX];
    int fds[FDS_MAX];
    uint32_t fd_count;
    int reply_fd; /* -1: none */
};

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "ntb_device: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t get(const void *from, size_t bytes)
{
    uint64_t value = 0;
    memcpy(&value, from, bytes);
    return value;
}

static void put(void *to, uint64_t value, size_t bytes)
{
    memcpy(to, &value, bytes);
}

static struct end *peer_of(struct link *link, struct end *end)
{
    return &link->ends[end == &link->ends[0]];
}

/* Interrupts */

static void fire(struct end *end, uint32_t vector)
{
    if (end->vectors[vector] < 0)
        return;
    end->interrupt_count++;
    (void)!write(end->vectors[vector], &(uint64_t){1}, sizeof(uint64_t));
}

static void ring(struct end *end, uint32_t bits)
{
    uint32_t fresh = bits & ~end->bell & ~end->bell_mask;
    end->bell |= bits;
    for (uint32_t i = 0; i < 16; i++)
        if (fresh >> i & 1)
            fire(end, i);
}

static void unmask(struct end *end, uint32_t mask)
{
    uint32_t due = end->bell & end->bell_mask & ~mask;
    end->bell_mask = mask;
    for (uint32_t i = 0; i < 16; i++)
        if (due >> i & 1)
            fire(end, i);
}

static void announce(struct end *end, uint32_t event)
{
    end->events = (end->events & ~(EVENT_UP | EVENT_DOWN)) | event;
    if ((end->event_mask & event) == 0)
        fire(end, VECTOR_EVENTS);
}

/* Memory of the machines */

static struct map *map_of(struct end *end, uint64_t address, uint64_t bytes)
{
    for (uint32_t i = 0; i < MAPS_MAX; i++) {
        struct map *map = &end->maps[i];
        if (map->base && address >= map->address && address + bytes <= map->address + map->bytes)
            return map;
    }
    return NULL;
}

static char *memory_at(struct end *end, uint64_t address, uint64_t bytes)
{
    struct map *map = map_of(end, address, bytes);
    return map ? map->base + (address - map->address) : NULL;
}

static uint64_t wide(struct end *end, uint32_t at)
{
    return end->registers[(at - FILE_FROM) / 4] | (uint64_t)end->registers[(at - FILE_FROM) / 4 + 1] << 32;
}

/* Windows that QEMU maps */

static void tell_map(struct end *end, uint32_t window, uint64_t offset, uint64_t bytes, const struct map *map,
                     uint64_t in_map)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct window_map request = {.offset = offset, .bytes = bytes};
    struct iovec part = {.iov_base = &request, .iov_len = sizeof request};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    int32_t result = -EPIPE;
    memcpy(request.name, end->window_names[window], sizeof request.name);
    if (map) {
        request.file_offset = map->file_offset + in_map;
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        *CMSG_FIRSTHDR(&message) =
            (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &map->file, sizeof map->file);
    }
    if (sendmsg(end->map_connection, &message, MSG_NOSIGNAL) != sizeof request ||
        recv(end->map_connection, &result, sizeof result, MSG_WAITALL) != sizeof result || result != 0)
        fprintf(stderr, "ntb_device: mapping a window: %s\n", strerror(-result));
}

static bool reach_map(struct end *end)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!end->map_path || end->connection < 0)
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
        struct map *map = map_of(peer, base + at, 1);
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
        if ((value & EVENT_UP) && !link->is_cut)
            end->is_deaf = false;
        break;
    default:
        end->registers[(at - FILE_FROM) / 4] = value;
        for (uint32_t window = 0; window < WINDOWS; window++)
            if (at / 8 == XLAT(2 + 2 * window) / 8 || at / 8 == LIMIT(2 + 2 * window) / 8)
                map_window(link, end, window); /* and not the other one, which may be in use */
    }
}

/* Whose register file `at` of BAR 0 is in; NULL: none that answers. */
static struct end *file_at(struct link *link, struct end *end, uint64_t *at)
{
    if (*at >= FILE_FROM && *at < FILE_TO)
        return end;
    if (*at < FILE_TO || *at >= FILE_TO + FILE_TO - FILE_FROM)
        return NULL;
    *at -= FILE_TO - FILE_FROM;
    return end->is_deaf ? NULL : peer_of(link, end);
}

static void registers_access(struct link *link, struct end *end, uint64_t at, uint8_t *data, uint32_t bytes,
                             bool is_write)
{
    struct end *owner = file_at(link, end, &at);
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
    char *to = base && !link->is_cut && at + bytes <= limit ? memory_at(peer_of(link, end), base + at, bytes) : NULL;
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

/* Configuration space */

static void config_make(struct end *end)
{
    uint8_t *c = end->config;
    memset(c, 0, CONFIG_BYTES);
    put(c + 0x00, 0x148b1022, 4);
    put(c + 0x06, 0x10, 2);       /* there are capabilities */
    put(c + 0x08, 0x06800000, 4); /* a bridge of another kind */
    put(c + 0x18, 0xc, 4);        /* BAR 2 and 4: 64 bits, prefetchable; BAR 0: 32 bits */
    put(c + 0x20, 0xc, 4);
    put(c + 0x2c, 0x148b1022, 4);
    c[0x34] = 0x40;
    put(c + 0x40, 0x00028010, 4); /* PCI Express endpoint; the next one is at 0x80 */
    put(c + 0x44, 0x8000, 4);
    put(c + 0x4c, 0x83, 4); /* link: generation 3, 8 lanes */
    put(c + 0x52, 0x83, 2);
    put(c + 0x80, 0x11 | (VECTORS - 1) << 16, 4);
    put(c + 0x84, MSIX_TABLE, 4);
    put(c + 0x88, MSIX_PENDING, 4);
}

static void config_write(struct end *end, uint64_t at, const uint8_t *data, uint32_t bytes)
{
    if (at >= 4 && (at < 0x10 || at >= 0x28) && at + bytes <= CONFIG_BYTES)
        memcpy(end->config + at, data, bytes);
}

static void access_region(struct link *link, struct end *end, uint32_t region, uint64_t at, uint8_t *data,
                          uint32_t bytes, bool is_write)
{
    if (region == 0) {
        *(is_write ? &end->write_count : &end->read_count) += 1;
        registers_access(link, end, at, data, bytes, is_write);
    } else if (region == 2 || region == 4)
        window_access(link, end, region, at, data, bytes, is_write);
    else if (region == 7 && is_write)
        config_write(end, at, data, bytes);
    else if (region == 7 && at + bytes <= CONFIG_BYTES)
        memcpy(data, end->config + at, bytes);
}

/* Ends come and go */

static void end_reset(struct link *link, struct end *end)
{
    config_make(end);
    memset(end->registers, 0, sizeof end->registers);
    end->registers[(SIDEINFO - FILE_FROM) / 4] = end == &link->ends[1];
    end->is_deaf = link->is_cut;
    end->bell = 0;
    end->bell_mask = 0xffff;
    end->events = 0;
    end->event_mask = 0x7f;
    for (uint32_t i = 0; i < VECTORS; i++)
        end->vectors[i] = -1;
}

static void forget_translations(struct end *end)
{
    for (uint32_t at = LIMIT(2); at < XLAT(4) + 8; at += 4)
        end->registers[(at - FILE_FROM) / 4] = 0;
}

static void end_leave(struct link *link, struct end *end)
{
    struct end *peer = peer_of(link, end);
    close(end->connection);
    end->connection = -1;
    for (uint32_t i = 0; i < VECTORS; i++)
        if (end->vectors[i] >= 0)
            close(end->vectors[i]);
    for (uint32_t i = 0; i < MAPS_MAX; i++)
        if (end->maps[i].base)
            munmap(end->maps[i].base, end->maps[i].bytes);
    memset(end->maps, 0, sizeof end->maps);
    for (int i = 0; i < FILES_MAX; i++)
        if (end->files[i].inode)
            close(end->files[i].fd);
    memset(end->files, 0, sizeof end->files);
    if (end->map_connection >= 0)
        close(end->map_connection);
    end->map_connection = -1;
    end_reset(link, end);
    forget_translations(peer);
    map_windows(link, peer);
    announce(peer, EVENT_DOWN);
}

/* The protocol. A handler returns the bytes of its reply, which it makes in the body. */

/* One descriptor for each file. -1: there are too many. */
static int keep_file(struct end *end, int fd)
{
    struct stat file;
    if (fstat(fd, &file) != 0)
        return -1;
    for (int i = 0; i < FILES_MAX; i++) {
        if (end->files[i].inode == 0)
            end->files[i] = (struct memory_file){.inode = file.st_ino, .fd = dup(fd)};
        if (end->files[i].inode == file.st_ino)
            return end->files[i].fd;
    }
    return -1;
}

static uint32_t map_memory(struct link *link, struct end *end, struct message *message)
{
    uint64_t offset = get(message->body + 8, 8), address = get(message->body + 16, 8),
             bytes = get(message->body + 24, 8);
    if (message->fd_count == 0)
        return 0; /* not memory */
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, message->fds[0], (off_t)offset);
    for (uint32_t i = 0; i < MAPS_MAX && base != MAP_FAILED; i++)
        if (!end->maps[i].base) {
            end->maps[i] = (struct map){.address = address,
                                        .bytes = bytes,
                                        .base = base,
                                        .file = keep_file(end, message->fds[0]),
                                        .file_offset = offset};
            map_again(link, end, address, bytes);
            return 0;
        }
    fprintf(stderr, "ntb_device: no room for memory at %#llx\n", (unsigned long long)address);
    return 0;
}

static uint32_t unmap_memory(struct link *link, struct end *end, struct message *message)
{
    uint64_t address = get(message->body + 8, 8), bytes = get(message->body + 16, 8);
    for (uint32_t i = 0; i < MAPS_MAX; i++) {
        struct map *map = &end->maps[i];
        if (map->base && map->address >= address && map->address + map->bytes <= address + bytes) {
            munmap(map->base, map->bytes);
            *map = (struct map){0};
        }
    }
    map_again(link, end, address, bytes);
    return 24;
}

static uint32_t describe_region(const struct link *link, const struct end *end, struct message *message)
{
    uint32_t index = (uint32_t)get(message->body + 8, 4);
    uint64_t bytes = index == 0                 ? BAR0_BYTES
                     : index == 2 || index == 4 ? link->window_bytes
                     : index == 7               ? CONFIG_BYTES
                                                : 0;
    memset(message->body, 0, 32);
    put(message->body, 32, 4);
    bool is_mapped = end->map_path && (index == 2 || index == 4);
    put(message->body + 4, (bytes ? 3 : 0) | (is_mapped ? 4 : 0), 4); /* readable, writable, to be mapped */
    message->reply_fd = is_mapped ? end->window_files[index / 2 - 1] : -1;
    put(message->body + 8, index, 4);
    put(message->body + 16, bytes, 8);
    return 32;
}

static uint32_t set_vectors(struct end *end, struct message *message)
{
    uint32_t flags = (uint32_t)get(message->body + 4, 4), index = (uint32_t)get(message->body + 8, 4);
    uint32_t start = (uint32_t)get(message->body + 12, 4), count = (uint32_t)get(message->body + 16, 4);
    if (index != 2)
        return 0;
    for (uint32_t i = 0; i < VECTORS; i++) {
        bool is_named = (flags & 4) ? i >= start && i - start < count : count == 0;
        if (!is_named)
            continue;
        if (end->vectors[i] >= 0)
            close(end->vectors[i]);
        end->vectors[i] = -1;
        if (i - start < message->fd_count) {
            end->vectors[i] = message->fds[i - start];
            message->fds[i - start] = -1; /* kept */
        }
    }
    return 0;
}

static uint32_t handle(struct link *link, struct end *end, struct message *message)
{
    static const char capabilities[] =
        "{\"capabilities\":{\"max_msg_fds\":8,\"max_data_xfer_size\":32768,\"pgsizes\":4096,\"max_dma_maps\":16384}}";
    uint8_t *body = message->body;
    uint32_t index = (uint32_t)get(body + 8, 4), bytes = (uint32_t)get(body + 12, 4);
    switch (message->header.command) {
    case VERSION:
        put(body, 0, 2);
        memcpy(body + 4, capabilities, sizeof capabilities);
        return 4 + sizeof capabilities;
    case DMA_MAP:
        return map_memory(link, end, message);
    case DMA_UNMAP:
        return unmap_memory(link, end, message);
    case GET_INFO:
        put(body, 16, 4);
        put(body + 4, 3, 4); /* PCI, can be reset */
        put(body + 8, 9, 4);
        put(body + 12, 5, 4);
        return 16;
    case GET_REGION:
        return describe_region(link, end, message);
    case GET_IRQ:
        put(body, 16, 4);
        put(body + 4, index == 2 ? 9 : 1, 4); /* eventfds; not to be resized */
        put(body + 12, index == 2 ? VECTORS : 0, 4);
        return 16;
    case SET_IRQS:
        return set_vectors(end, message);
    case READ:
    case WRITE:
        if (bytes > BODY_MAX - 16)
            break;
        access_region(link, end, index, get(body, 8), body + 16, bytes, message->header.command == WRITE);
        return message->header.command == WRITE ? 16 : 16 + bytes;
    case RESET:
        return 0;
    }
    message->header.error = EINVAL;
    return 0;
}

static bool receive(struct end *end, struct message *message)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * FDS_MAX)];
    } control;
    struct iovec part = {.iov_base = &message->header, .iov_len = sizeof message->header};
    struct msghdr parts = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    message->fd_count = 0;
    if (recvmsg(end->connection, &parts, MSG_WAITALL) != sizeof message->header)
        return false;
    struct cmsghdr *carried = CMSG_FIRSTHDR(&parts);
    if (carried && carried->cmsg_type == SCM_RIGHTS) {
        message->fd_count = (uint32_t)((carried->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(message->fds, CMSG_DATA(carried), message->fd_count * sizeof(int));
    }
    uint32_t bytes = message->header.bytes - (uint32_t)sizeof message->header;
    return message->header.bytes >= sizeof message->header && bytes <= BODY_MAX &&
           (bytes == 0 || recv(end->connection, message->body, bytes, MSG_WAITALL) == (ssize_t)bytes);
}

static bool answer(const struct end *end, struct message *message)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {.iov_base = message, .iov_len = message->header.bytes};
    struct msghdr parts = {.msg_iov = &part, .msg_iovlen = 1};
    if (message->reply_fd >= 0) {
        parts.msg_control = &control;
        parts.msg_controllen = sizeof control;
        *CMSG_FIRSTHDR(&parts) =
            (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&parts)), &message->reply_fd, sizeof(int));
    }
    return sendmsg(end->connection, &parts, MSG_NOSIGNAL) == (ssize_t)message->header.bytes;
}

static bool serve(struct link *link, struct end *end, struct message *message)
{
    if (!receive(end, message))
        return false;
    message->header.error = 0;
    message->reply_fd = -1;
    uint32_t bytes = handle(link, end, message);
    for (uint32_t i = 0; i < message->fd_count; i++)
        if (message->fds[i] >= 0)
            close(message->fds[i]);
    if (message->header.flags & FLAG_NO_REPLY)
        return true;
    message->header.flags = FLAG_REPLY | (message->header.error ? FLAG_ERROR : 0);
    message->header.bytes = (uint32_t)sizeof message->header + bytes;
    return answer(end, message);
}

static int listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    unlink(path);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 1) != 0)
        die(path);
    return fd;
}

/* The files that QEMU maps first; window_map puts the peer's memory there. */
static void make_windows(struct link *link, struct end *end, const char *map_path)
{
    end->map_path = map_path;
    for (uint32_t window = 0; window < WINDOWS && map_path; window++) {
        char *name = end->window_names[window];
        snprintf(name, WINDOW_NAME_BYTES, WINDOW_PREFIX "%d-%d-%u", getpid(), (int)(end - link->ends), window);
        end->window_files[window] = memfd_create(name, MFD_CLOEXEC);
        if (end->window_files[window] < 0 || ftruncate(end->window_files[window], (off_t)link->window_bytes) != 0)
            die("a window");
    }
}

static _Noreturn void end_by_signal(const struct link *link)
{
    for (int i = 0; i < 2; i++)
        printf("end %d: %llu reads and %llu writes of registers, %llu interrupts\n", i,
               (unsigned long long)link->ends[i].read_count, (unsigned long long)link->ends[i].write_count,
               (unsigned long long)link->ends[i].interrupt_count);
    exit(0);
}

static void take_signal(struct link *link, int signal_fd)
{
    struct signalfd_siginfo signal;
    if (read(signal_fd, &signal, sizeof signal) != sizeof signal)
        return;
    if (signal.ssi_signo == SIGTERM)
        end_by_signal(link);
    link->is_cut = signal.ssi_signo == SIGUSR1;
    for (int i = 0; i < 2; i++) {
        if (link->is_cut) {
            link->ends[i].is_deaf = true;
            forget_translations(&link->ends[i]);
        }
        map_windows(link, &link->ends[i]);
        if (link->ends[i].connection >= 0 && peer_of(link, &link->ends[i])->connection >= 0)
            announce(&link->ends[i], link->is_cut ? EVENT_DOWN : EVENT_UP);
    }
}

static void come(struct link *link, struct end *end)
{
    end->connection = accept4(end->listener, NULL, NULL, SOCK_CLOEXEC);
    if (!link->is_cut)
        announce(peer_of(link, end), EVENT_UP);
}

int main(int argc, char **argv)
{
    static struct link link;
    static struct message message;
    sigset_t signals;
    if (argc != 4 && argc != 6) {
        fprintf(stderr, "use: ntb_device WINDOW_MIB SOCKET SOCKET [MAP_SOCKET MAP_SOCKET]\n");
        return 2;
    }
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    sigaddset(&signals, SIGUSR2);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    int signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
    link.window_bytes = strtoull(argv[1], NULL, 10) << 20;
    for (int i = 0; i < 2; i++) {
        end_reset(&link, &link.ends[i]);
        link.ends[i].connection = -1;
        link.ends[i].map_connection = -1;
        make_windows(&link, &link.ends[i], argc == 6 ? argv[4 + i] : NULL);
        link.ends[i].listener = listen_at(argv[2 + i]);
    }
    for (;;) {
        struct pollfd polls[3];
        for (int i = 0; i < 2; i++)
            polls[i] = (struct pollfd){
                .fd = link.ends[i].connection >= 0 ? link.ends[i].connection : link.ends[i].listener, .events = POLLIN};
        polls[2] = (struct pollfd){.fd = signal_fd, .events = POLLIN};
        if (poll(polls, 3, -1) < 0)
            die("poll");
        for (int i = 0; i < 2; i++) {
            struct end *end = &link.ends[i];
            if (polls[i].revents == 0)
                continue;
            if (end->connection < 0)
                come(&link, end);
            else if (!serve(&link, end, &message))
                end_leave(&link, end);
        }
        if (polls[2].revents)
            take_signal(&link, signal_fd);
    }
}
