/* SPDX-License-Identifier: BSD-3-Clause */
#include "port/linux/device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

static enum quoit_status status_of(int result)
{
    if (result >= 0)
        return QUOIT_OK;
    switch (errno) {
    case ENOLINK:
        return QUOIT_LINK_DOWN;
    case ENODEV:
        return QUOIT_GONE;
    case EBUSY:
        return QUOIT_FULL;
    case EADDRNOTAVAIL:
        return QUOIT_UNSUPPORTED;
    default:
        return QUOIT_SYSTEM;
    }
}

enum quoit_status quoit_linux_device_open(int owner_fd, int *fd_out)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", owner_fd); /* another open file of the same device */
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return QUOIT_SYSTEM;
    enum quoit_status status = status_of(ioctl(fd, QUOIT_NTB_JOIN, &owner_fd));
    if (status != QUOIT_OK) {
        int error = errno;
        close(fd);
        errno = error;
        return status;
    }
    *fd_out = fd;
    return QUOIT_OK;
}

enum quoit_status quoit_linux_device_info(int fd, struct quoit_ntb_info *info_out)
{
    return status_of(ioctl(fd, QUOIT_NTB_INFO, info_out));
}

enum quoit_status quoit_linux_device_lease(int fd, uint64_t bits, uint32_t window, uint64_t bytes)
{
    struct quoit_ntb_lease lease = {.bits_want = bits, .window = window, .bytes = bytes};
    return status_of(ioctl(fd, QUOIT_NTB_LEASE, &lease));
}

void *quoit_linux_device_map_window(int fd, uint32_t window, uint64_t bytes)
{
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)QUOIT_NTB_OUTBOUND(window));
    return base == MAP_FAILED ? NULL : base;
}

const struct quoit_ntb_state *quoit_linux_device_map_state(int fd)
{
    void *base = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, fd, (off_t)QUOIT_NTB_STATE);
    return base == MAP_FAILED ? NULL : base;
}

enum quoit_status quoit_linux_device_want_link(int fd, bool is_wanted)
{
    struct quoit_ntb_link link = {.wish = is_wanted ? QUOIT_NTB_LINK_ENABLE : QUOIT_NTB_LINK_RELEASE};
    return status_of(ioctl(fd, QUOIT_NTB_LINK, &link));
}

enum quoit_status quoit_linux_device_accept(int fd, uint32_t epoch)
{
    return status_of(ioctl(fd, QUOIT_NTB_ACCEPT, &epoch));
}

enum quoit_status quoit_linux_device_pin(int fd, void *base, uint64_t bytes, int *memory_fd_out)
{
    struct quoit_ntb_memory memory = {.address = (uint64_t)(uintptr_t)base, .bytes = bytes};
    int result = ioctl(fd, QUOIT_NTB_MEMORY, &memory);
    if (result >= 0)
        *memory_fd_out = result;
    return status_of(result);
}

enum quoit_status quoit_linux_device_expose(int fd, uint32_t window, int memory_fd, uint64_t bytes)
{
    struct quoit_ntb_inbound inbound = {.memory_fd = memory_fd, .window = window, .bytes = bytes};
    return status_of(ioctl(fd, QUOIT_NTB_WINDOW, &inbound));
}

enum quoit_status quoit_linux_device_bits(int fd, unsigned long command, uint64_t bits)
{
    struct quoit_ntb_bits argument = {.bits = bits};
    return status_of(ioctl(fd, command, &argument));
}

enum quoit_status quoit_linux_device_bits_set(int fd, uint64_t *bits_out)
{
    struct quoit_ntb_bits argument = {0};
    enum quoit_status status = status_of(ioctl(fd, QUOIT_NTB_DOORBELL, &argument));
    *bits_out = argument.bits;
    return status;
}

enum quoit_status quoit_linux_device_scratchpad(int fd, uint32_t index, uint32_t *value_out)
{
    struct quoit_ntb_scratchpad argument = {.index = index};
    enum quoit_status status = status_of(ioctl(fd, QUOIT_NTB_SCRATCHPAD, &argument));
    *value_out = status == QUOIT_OK ? argument.value : 0;
    return status;
}

enum quoit_status quoit_linux_device_scratchpad_peer(int fd, uint32_t index, uint32_t value)
{
    struct quoit_ntb_scratchpad argument = {.index = index, .value = value};
    return status_of(ioctl(fd, QUOIT_NTB_SCRATCHPAD_PEER, &argument));
}

enum quoit_status quoit_linux_device_signal(int fd, const struct quoit_ntb_eventfd *wanted)
{
    return status_of(ioctl(fd, QUOIT_NTB_EVENTFD, wanted));
}

enum quoit_status quoit_linux_device_copy(int fd, const struct quoit_ntb_copy *wanted)
{
    int result = ioctl(fd, QUOIT_NTB_COPY, wanted);
    if (result >= 0)
        return QUOIT_OK;
    switch (errno) {
    case EAGAIN:
        return QUOIT_FULL;
    case EOPNOTSUPP:
        return QUOIT_UNSUPPORTED;
    case EINVAL:
        return QUOIT_INVALID;
    default:
        return status_of(result);
    }
}

uint32_t quoit_linux_device_done(int fd, struct quoit_ntb_done *done_out, uint32_t most)
{
    ssize_t bytes = read(fd, done_out, most * sizeof *done_out);
    return bytes > 0 ? (uint32_t)((size_t)bytes / sizeof *done_out) : 0;
}
