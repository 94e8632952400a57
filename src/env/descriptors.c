/* SPDX-License-Identifier: BSD-3-Clause */
#include "env/descriptors.h"
#include "base/assert.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define FDS_BYTES(count) CMSG_SPACE(sizeof(int) * (count))
#define SENDER_BYTES     CMSG_SPACE(sizeof(struct ucred))

ssize_t quoit_send_with_descriptors(int fd, const void *bytes, size_t byte_count, const int *fds, uint32_t fd_count,
                                    int flags)
{
    union {
        struct cmsghdr header;
        char bytes[FDS_BYTES(QUOIT_DESCRIPTORS_MAX)];
    } control = {0};
    struct iovec part = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = byte_count};
    struct msghdr packet = {.msg_iov = &part, .msg_iovlen = 1};
    quoit_assert(fd_count <= QUOIT_DESCRIPTORS_MAX);
    if (fd_count > 0) {
        packet.msg_control = control.bytes;
        packet.msg_controllen = FDS_BYTES(fd_count);
        control.header = (struct cmsghdr){
            .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int) * fd_count)};
        memcpy(CMSG_DATA(&control.header), fds, sizeof(int) * fd_count);
    }
    ssize_t n;
    do
        n = sendmsg(fd, &packet, flags | MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n;
}

static void take_descriptors(const struct cmsghdr *header, struct quoit_ancillary *ancillary)
{
    size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
        int came;
        memcpy(&came, CMSG_DATA(header) + i * sizeof came, sizeof came);
        if (ancillary->fd_count < ancillary->fd_max) {
            ancillary->fds[ancillary->fd_count++] = came;
        } else {
            close(came); /* it lay in the room for the sender */
            ancillary->is_truncated = true;
        }
    }
}

ssize_t quoit_receive_with_descriptors(int fd, void *bytes_out, size_t byte_count, struct quoit_ancillary *ancillary,
                                       int flags)
{
    union {
        struct cmsghdr header;
        char bytes[SENDER_BYTES + FDS_BYTES(QUOIT_DESCRIPTORS_MAX)];
    } control;
    struct iovec part = {.iov_base = bytes_out, .iov_len = byte_count};
    struct msghdr packet;
    quoit_assert(ancillary->fd_max <= QUOIT_DESCRIPTORS_MAX);
    ancillary->fd_count = 0;
    ancillary->is_truncated = false;
    ancillary->sender = 0;
    ssize_t n;
    do {
        packet = (struct msghdr){.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes};
        packet.msg_controllen = SENDER_BYTES + (ancillary->fd_max > 0 ? FDS_BYTES(ancillary->fd_max) : 0);
        n = recvmsg(fd, &packet, flags | MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return n;
    ancillary->is_truncated = (packet.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&packet); header; header = CMSG_NXTHDR(&packet, header)) {
        if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
            take_descriptors(header, ancillary);
        } else if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_CREDENTIALS) {
            struct ucred sender;
            memcpy(&sender, CMSG_DATA(header), sizeof sender);
            ancillary->sender = sender.pid;
        }
    }
    return n;
}

void quoit_fill_standard_descriptors(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

uint64_t quoit_descriptor_limit(void)
{
    struct rlimit files;
    return getrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_cur : 0;
}
