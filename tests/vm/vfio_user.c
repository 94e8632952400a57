/* SPDX-License-Identifier: BSD-3-Clause */
#include "vfio_user.h"
#include "env/descriptors.h"
#include "local_socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define REGISTERS_PENDING 0x3000u
#define CONFIG_REGION     7u

enum command {
    VERSION = 1,
    DMA_MAP,
    DMA_UNMAP,
    GET_INFO,
    GET_REGION,
    GET_IRQ = 7,
    SET_IRQS,
    READ,
    WRITE,
    DMA_WRITE = 12,
    RESET
};
#define FLAG_TYPE     0xfu
#define FLAG_REPLY    1u
#define FLAG_NO_REPLY 0x10u
#define FLAG_ERROR    0x20u

_Noreturn void die(const char *what)
{
    fprintf(stderr, "ntb_device: %s: %s\n", what, strerror(errno));
    exit(1);
}

void function_fire(struct function *function, uint32_t vector)
{
    if (function->vectors[vector] < 0)
        return;
    function->interrupt_count++;
    (void)!write(function->vectors[vector], &(uint64_t){1}, sizeof(uint64_t));
}

/* Memory of the machine */

struct map *function_map_of(struct function *function, uint64_t address, uint64_t bytes)
{
    for (uint32_t i = 0; i < MAPS_MAX; i++) {
        struct map *map = &function->maps[i];
        if (map->base && address >= map->address && address + bytes <= map->address + map->bytes)
            return map;
    }
    return NULL;
}

char *function_memory(struct function *function, uint64_t address, uint64_t bytes)
{
    struct map *map = function_map_of(function, address, bytes);
    return map ? map->base + (address - map->address) : NULL;
}

bool function_is_same_machine(const struct function *a, const struct function *b)
{
    for (int i = 0; i < FILES_MAX && a->files[i].inode; i++)
        for (int j = 0; j < FILES_MAX && b->files[j].inode; j++)
            if (a->files[i].inode == b->files[j].inode)
                return true;
    return false;
}

/* One descriptor for each file. -1: there are too many. */
static int keep_file(struct function *function, int fd)
{
    struct stat file;
    if (fstat(fd, &file) != 0)
        return -1;
    for (int i = 0; i < FILES_MAX; i++) {
        if (function->files[i].inode == 0)
            function->files[i] = (struct memory_file){.inode = file.st_ino, .fd = dup(fd)};
        if (function->files[i].inode == file.st_ino)
            return function->files[i].fd;
    }
    return -1;
}

static void memory_changed(struct function *function, uint64_t address, uint64_t bytes)
{
    if (function->ops->memory_changed)
        function->ops->memory_changed(function, address, bytes);
}

static uint32_t map_memory(struct function *function, struct message *message)
{
    uint64_t offset = get(message->body + 8, 8), address = get(message->body + 16, 8),
             bytes = get(message->body + 24, 8);
    if (message->fd_count == 0)
        return 0; /* not memory */
    usleep(function->map_late_us);
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, message->fds[0], (off_t)offset);
    for (uint32_t i = 0; i < MAPS_MAX && base != MAP_FAILED; i++)
        if (!function->maps[i].base) {
            function->maps[i] = (struct map){.address = address,
                                             .bytes = bytes,
                                             .base = base,
                                             .file = keep_file(function, message->fds[0]),
                                             .file_offset = offset};
            memory_changed(function, address, bytes);
            return 0;
        }
    fprintf(stderr, "ntb_device: no room for memory at %#llx\n", (unsigned long long)address);
    return 0;
}

static uint32_t unmap_memory(struct function *function, struct message *message)
{
    uint64_t address = get(message->body + 8, 8), bytes = get(message->body + 16, 8);
    for (uint32_t i = 0; i < MAPS_MAX; i++) {
        struct map *map = &function->maps[i];
        if (map->base && map->address >= address && map->address + map->bytes <= address + bytes) {
            munmap(map->base, map->bytes);
            *map = (struct map){0};
        }
    }
    memory_changed(function, address, bytes);
    return 24;
}

static void forget_memory(struct function *function)
{
    for (uint32_t i = 0; i < MAPS_MAX; i++)
        if (function->maps[i].base)
            munmap(function->maps[i].base, function->maps[i].bytes);
    memset(function->maps, 0, sizeof function->maps);
    for (int i = 0; i < FILES_MAX; i++)
        if (function->files[i].inode)
            close(function->files[i].fd);
    memset(function->files, 0, sizeof function->files);
}

/* Configuration space */

void function_config(struct function *function, uint32_t id, uint32_t class)
{
    uint8_t *c = function->config;
    memset(c, 0, CONFIG_BYTES);
    put(c + 0x00, id, 4);
    put(c + 0x06, 0x10, 2); /* there are capabilities */
    put(c + 0x08, class, 4);
    put(c + 0x2c, id, 4);
    c[0x34] = 0x40;
    put(c + 0x40, 0x00028010, 4); /* PCI Express endpoint; the next one is at 0x80 */
    put(c + 0x44, 0x8000, 4);
    put(c + 0x4c, 0x83, 4); /* link: generation 3, 8 lanes */
    put(c + 0x52, 0x83, 2);
    put(c + 0x80, 0x11 | (function->vector_count - 1) << 16, 4);
    put(c + 0x84, REGISTERS_VECTOR, 4);
    put(c + 0x88, REGISTERS_PENDING, 4);
}

uint64_t function_bar(const struct function *function, uint32_t bar)
{
    return (function->bars[bar] & ~0xfu) | (uint64_t)function->bars[bar + 1] << 32;
}

/* What is read at a BAR is its kind: QEMU keeps what the machine reads there. All ones ask for its size. */
static void config_write(struct function *function, uint64_t at, const uint8_t *data, uint32_t bytes)
{
    if (at >= 0x10 && at < 0x28) {
        if (bytes == 4 && get(data, 4) != UINT32_MAX)
            function->bars[(at - 0x10) / 4] = (uint32_t)get(data, 4);
    } else if (at >= 4 && at + bytes <= CONFIG_BYTES)
        memcpy(function->config + at, data, bytes);
}

static void access_region(struct function *function, uint32_t region, uint64_t at, uint8_t *data, uint32_t bytes,
                          bool is_write)
{
    if (region < BARS && function->bar_bytes[region]) {
        if (region == 0)
            *(is_write ? &function->write_count : &function->read_count) += 1;
        function->ops->access(function, region, at, data, bytes, is_write);
    } else if (region == CONFIG_REGION && is_write)
        config_write(function, at, data, bytes);
    else if (region == CONFIG_REGION && at + bytes <= CONFIG_BYTES) {
        memcpy(data, function->config + at, bytes);
        if (function->ops->config_read)
            function->ops->config_read(function, at, bytes);
    }
}

/* The protocol. A handler returns the bytes of its reply, which it makes in the body. */

static uint32_t describe_region(const struct function *function, struct message *message)
{
    uint32_t index = (uint32_t)get(message->body + 8, 4);
    uint64_t bytes = index < BARS ? function->bar_bytes[index] : index == CONFIG_REGION ? CONFIG_BYTES : 0;
    bool is_mapped = index < BARS && function->bar_files[index] >= 0;
    memset(message->body, 0, 32);
    put(message->body, 32, 4);
    put(message->body + 4, (bytes ? 3 : 0) | (is_mapped ? 4 : 0), 4); /* readable, writable, to be mapped */
    message->reply_fd = is_mapped ? function->bar_files[index] : -1;
    put(message->body + 8, index, 4);
    put(message->body + 16, bytes, 8);
    return 32;
}

static uint32_t set_vectors(struct function *function, struct message *message)
{
    uint32_t flags = (uint32_t)get(message->body + 4, 4), index = (uint32_t)get(message->body + 8, 4);
    uint32_t start = (uint32_t)get(message->body + 12, 4), count = (uint32_t)get(message->body + 16, 4);
    if (index != 2)
        return 0;
    for (uint32_t i = 0; i < function->vector_count; i++) {
        bool is_named = (flags & 4) ? i >= start && i - start < count : count == 0;
        if (!is_named)
            continue;
        if (function->vectors[i] >= 0)
            close(function->vectors[i]);
        function->vectors[i] = -1;
        if (i - start < message->fd_count) {
            function->vectors[i] = message->fds[i - start];
            message->fds[i - start] = -1; /* kept */
        }
    }
    return 0;
}

static uint32_t handle(struct function *function, struct message *message)
{
    static const char capabilities[] =
        "{\"capabilities\":{\"max_msg_fds\":8,\"max_data_xfer_size\":32768,\"pgsizes\":4096,\"max_dma_maps\":32768}}";
    uint8_t *body = message->body;
    uint32_t index = (uint32_t)get(body + 8, 4), bytes = (uint32_t)get(body + 12, 4);
    switch (message->header.command) {
    case VERSION:
        put(body, 0, 2);
        memcpy(body + 4, capabilities, sizeof capabilities);
        return 4 + sizeof capabilities;
    case DMA_MAP:
        return map_memory(function, message);
    case DMA_UNMAP:
        return unmap_memory(function, message);
    case GET_INFO:
        put(body, 16, 4);
        put(body + 4, 3, 4); /* PCI, can be reset */
        put(body + 8, 9, 4);
        put(body + 12, 5, 4);
        return 16;
    case GET_REGION:
        return describe_region(function, message);
    case GET_IRQ:
        put(body, 16, 4);
        put(body + 4, index == 2 ? 9 : 1, 4); /* eventfds; not to be resized */
        put(body + 12, index == 2 ? function->vector_count : 0, 4);
        return 16;
    case SET_IRQS:
        return set_vectors(function, message);
    case READ:
    case WRITE:
        if (bytes > BODY_MAX - 16)
            break;
        access_region(function, index, get(body, 8), body + 16, bytes, message->header.command == WRITE);
        return message->header.command == WRITE ? 16 : 16 + bytes;
    case RESET:
        return 0;
    }
    message->header.error = EINVAL;
    return 0;
}

static bool receive(struct function *function, struct message *message)
{
    struct quoit_ancillary carried = {.fds = message->fds, .fd_max = FDS_MAX};
    if (quoit_receive_with_descriptors(function->connection, &message->header, sizeof message->header, &carried,
                                       MSG_WAITALL) != sizeof message->header)
        return false;
    message->fd_count = carried.fd_count;
    uint32_t bytes = message->header.bytes - (uint32_t)sizeof message->header;
    return message->header.bytes >= sizeof message->header && bytes <= BODY_MAX &&
           (bytes == 0 || recv(function->connection, message->body, bytes, MSG_WAITALL) == (ssize_t)bytes);
}

static bool answer(const struct function *function, const struct message *message)
{
    return quoit_send_with_descriptors(function->connection, message, message->header.bytes, &message->reply_fd,
                                       message->reply_fd >= 0, 0) == (ssize_t)message->header.bytes;
}

/* False: the machine is gone. */
static bool serve_message(struct function *function)
{
    struct message *message = &function->message;
    if (!receive(function, message))
        return false;
    if ((message->header.flags & FLAG_TYPE) == FLAG_REPLY) {
        function->ops->written(function); /* also if nothing is at that address */
        return true;
    }
    message->header.error = 0;
    message->reply_fd = -1;
    uint32_t bytes = handle(function, message);
    for (uint32_t i = 0; i < message->fd_count; i++)
        if (message->fds[i] >= 0)
            close(message->fds[i]);
    if (message->header.flags & FLAG_NO_REPLY)
        return true;
    message->header.flags = FLAG_REPLY | (message->header.error ? FLAG_ERROR : 0);
    message->header.bytes = (uint32_t)sizeof message->header + bytes;
    return answer(function, message);
}

void function_write(struct function *function, uint64_t address, const char *from, uint32_t bytes)
{
    static struct {
        struct header header;
        uint64_t address, count;
        char data[WRITE_MAX];
    } message;
    uint32_t whole = (uint32_t)sizeof message - WRITE_MAX + bytes;
    message.header = (struct header){.command = DMA_WRITE, .bytes = whole};
    message.address = address;
    message.count = bytes;
    memcpy(message.data, from, bytes);
    (void)!send(function->connection, &message, whole, MSG_NOSIGNAL); /* a machine that is gone is noticed by poll() */
}

/* Coming and going */

static void reset(struct function *function)
{
    memset(function->bars, 0, sizeof function->bars);
    for (uint32_t i = 0; i < VECTORS_MAX; i++)
        function->vectors[i] = -1;
    function->ops->reset(function);
}

static void leave(struct function *function)
{
    close(function->connection);
    function->connection = -1;
    for (uint32_t i = 0; i < VECTORS_MAX; i++)
        if (function->vectors[i] >= 0)
            close(function->vectors[i]);
    forget_memory(function);
    function->ops->leave(function);
    reset(function);
}

void function_open(struct function *function, const struct function_ops *ops, const char *path, uint32_t vector_count)
{
    function->ops = ops;
    function->listener = local_socket_listen(path);
    if (function->listener < 0)
        die(path);
    function->connection = -1;
    function->vector_count = vector_count;
    function->bar_bytes[0] = REGISTERS_BYTES;
    for (uint32_t i = 0; i < BARS; i++)
        function->bar_files[i] = -1;
    reset(function);
}

int function_fd(const struct function *function)
{
    return function->connection >= 0 ? function->connection : function->listener;
}

void function_serve(struct function *function)
{
    if (function->connection >= 0) {
        if (!serve_message(function))
            leave(function);
        return;
    }
    function->connection = accept4(function->listener, NULL, NULL, SOCK_CLOEXEC);
    if (function->connection >= 0 && function->ops->come)
        function->ops->come(function);
}
