/* SPDX-License-Identifier: BSD-3-Clause */
/* window_map: makes the windows of ntb_device mappings of the peer's memory, in an unmodified QEMU.
 *
 * What it is: a library loaded before QEMU. vfio-user lets a device give QEMU a file for a window, which QEMU maps
 * once; but a translation changes while the machine runs. So this library remembers where QEMU mapped the files that
 * ntb_device names "ntb-window-...", listens on the socket $NTB_WINDOWS, and maps there what ntb_device says: a part of
 * the peer's memory, or, without a descriptor, pages where writes vanish and that were read as ones before.
 *
 * Threads: mappings are replaced whole while the machine runs; a store goes to the old or to the new one.
 */
#define _GNU_SOURCE 1
#include "window_map.h"
#include "local_socket.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define WINDOWS_MAX 16

static struct window {
    char name[WINDOW_NAME_BYTES];
    char *base;
    size_t bytes;
} windows[WINDOWS_MAX];
static int window_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *(*real_mmap)(void *, size_t, int, int, int, off_t);

static void remember(char *base, size_t bytes, int fd)
{
    char link[64], target[128];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, target, sizeof target - 1);
    target[length > 0 ? length : 0] = 0;
    char *name = strstr(target, WINDOW_PREFIX);
    if (!name)
        return;
    name[strcspn(name, " ")] = 0;
    pthread_mutex_lock(&lock);
    if (window_count < WINDOWS_MAX) {
        struct window *window = &windows[window_count++];
        snprintf(window->name, sizeof window->name, "%s", name);
        window->base = base;
        window->bytes = bytes;
    }
    pthread_mutex_unlock(&lock);
}

__attribute__((visibility("default"))) void *mmap(void *at, size_t bytes, int protection, int flags, int fd,
                                                  off_t offset)
{
    if (!real_mmap)
        real_mmap = (void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap");
    void *base = real_mmap(at, bytes, protection, flags, fd, offset);
    if (base != MAP_FAILED && fd >= 0 && (flags & MAP_SHARED))
        remember(base, bytes, fd);
    return base;
}

__attribute__((visibility("default"))) void *mmap64(void *at, size_t bytes, int protection, int flags, int fd,
                                                    off_t offset)
{
    return mmap(at, bytes, protection, flags, fd, offset);
}

/* At least that long. Private pages of it cost nothing until they are used: a window is replaced at each change of its
 * translation. -1, with errno: there is none. `lock` is held. */
static int file_of_ones(uint64_t bytes)
{
    static int file = -1;
    static uint64_t filled;
    char ones[1 << 16];
    memset(ones, 0xff, sizeof ones);
    if (file < 0)
        file = memfd_create("ones", MFD_CLOEXEC);
    while (file >= 0 && filled < bytes) {
        if (pwrite(file, ones, sizeof ones, (off_t)filled) != sizeof ones)
            return -1;
        filled += sizeof ones;
    }
    return file;
}

static int32_t place(const struct window_map *map, int fd)
{
    int32_t result = -ENOENT;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < window_count; i++) {
        const struct window *window = &windows[i];
        if (strcmp(window->name, map->name) != 0 || map->offset + map->bytes > window->bytes)
            continue;
        void *base = real_mmap(window->base + map->offset, map->bytes, PROT_READ | PROT_WRITE,
                               MAP_FIXED | (fd >= 0 ? MAP_SHARED : MAP_PRIVATE),
                               fd >= 0 ? fd : file_of_ones(map->bytes), (off_t)map->file_offset);
        result = base == MAP_FAILED ? -errno : 0;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static void *serve(void *arg)
{
    int connection = (int)(intptr_t)arg;
    for (;;) {
        struct window_map map;
        union {
            struct cmsghdr align;
            char bytes[CMSG_SPACE(sizeof(int))];
        } control;
        struct iovec part = {.iov_base = &map, .iov_len = sizeof map};
        struct msghdr message = {
            .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
        int fd = -1;
        if (recvmsg(connection, &message, MSG_WAITALL) != sizeof map)
            break;
        if (CMSG_FIRSTHDR(&message))
            memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
        int32_t result = place(&map, fd);
        if (fd >= 0)
            close(fd);
        if (write(connection, &result, sizeof result) != sizeof result)
            break;
    }
    close(connection);
    return NULL;
}

static void *listen_for_devices(void *arg)
{
    for (;;) {
        pthread_t thread;
        int fd = accept4((int)(intptr_t)arg, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0 && pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd) == 0)
            pthread_detach(thread);
    }
    return NULL;
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("NTB_WINDOWS");
    pthread_t thread;
    if (!path)
        return;
    int fd = local_socket_listen(path);
    if (fd < 0 || pthread_create(&thread, NULL, listen_for_devices, (void *)(intptr_t)fd) != 0) {
        perror("window_map");
        _exit(1);
    }
}
