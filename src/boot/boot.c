/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/boot.h"
#include "boot/place.h"
#include "base/log.h"
#include "env/clock.h"
#include "env/limits.h"
#include "env/map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define PLACE_NS          2000000000u
#define PAGE_BYTES        4096u
#define ALONE_HEAP_BYTES  (1ull << 36) /* a limit of addresses, not of memory: pages come as the heap grows */
#define ALONE_CHUNK_BYTES 64u

/* Launchers that set a number of processes; seen without QUOIT_BOOT_FD, the program was started by the wrong one. */
static const char *const foreign_sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE", "MPI_LOCALNRANKS"};

static enum quoit_status refuse_foreign_launcher(void)
{
    for (size_t i = 0; i < sizeof foreign_sizes / sizeof foreign_sizes[0]; i++) {
        const char *value = getenv(foreign_sizes[i]);
        if (value && atoi(value) > 1) {
            quoit_say("started by a launcher that is not oshrun (%s=%s): this would be %s jobs of one PE each [Q0301]\n"
                      "  start it with: oshrun -n %s PROGRAM",
                      foreign_sizes[i], value, value, value);
            return QUOIT_UNSUPPORTED;
        }
    }
    return QUOIT_OK;
}

static enum quoit_status map_memory(struct quoit_boot *boot)
{
    boot->memory = quoit_map_file(boot->memory_fd, boot->layout.total_bytes, PROT_READ | PROT_WRITE);
    if (!boot->memory) {
        quoit_say("cannot map %llu MiB of address space for the symmetric segments: %s (ulimit -v; a smaller "
                  "SHMEM_SYMMETRIC_SIZE needs less) [Q0302]",
                  (unsigned long long)(boot->layout.total_bytes >> 20), strerror(errno));
        return QUOIT_NO_MEMORY;
    }
    return QUOIT_OK;
}

/* A quarter of the addresses that a limit leaves, as the heap is mapped twice, and what a file may have; the rest is
 * for the program. */
static uint64_t default_heap_alone(uint64_t data_bytes)
{
    uint64_t addresses = quoit_limits_address_bytes() / 4, file = quoit_limits_file_bytes(), bytes = ALONE_HEAP_BYTES;
    uint64_t others = QUOIT_RUNTIME_BYTES + data_bytes + 3ull * QUOIT_HUGE_PAGE_BYTES;
    bytes = addresses < bytes ? addresses : bytes;
    if (file < bytes + others)
        bytes = file > others ? file - others : 0;
    bytes = bytes / QUOIT_HUGE_PAGE_BYTES * QUOIT_HUGE_PAGE_BYTES;
    return bytes ? bytes : QUOIT_HUGE_PAGE_BYTES;
}

static enum quoit_status say_no_memory(const struct quoit_boot *boot, int error)
{
    if (error == EFBIG)
        quoit_say("shared memory is a file of %llu MiB, but ulimit -f allows %llu MiB; a smaller SHMEM_SYMMETRIC_SIZE "
                  "needs less [Q0302]",
                  (unsigned long long)(boot->layout.total_bytes >> 20),
                  (unsigned long long)(quoit_limits_file_bytes() >> 20));
    else
        quoit_say("cannot create %llu MiB of shared memory: %s%s [Q0302]",
                  (unsigned long long)(boot->layout.total_bytes >> 20), strerror(error),
                  error == EPERM || error == ENOSYS ? " (a filter of system calls must allow memfd_create)" : "");
    return QUOIT_SYSTEM;
}

/* A job of one PE whose memory is its own. */
static enum quoit_status start_alone(uint64_t data_bytes, struct quoit_boot *boot)
{
    enum quoit_status status = refuse_foreign_launcher();
    if (status != QUOIT_OK)
        return status;
    struct quoit_job_config job = {
        .host_count = 1,
        .pe_count = 1,
        .lane_count = 1,
        .slot_count = QUOIT_RING_SLOTS_MIN,
        .chunk_bytes = ALONE_CHUNK_BYTES,
        .data_bytes = data_bytes,
        .heap_bytes = boot->heap_bytes_alone ? boot->heap_bytes_alone : default_heap_alone(data_bytes),
    };
    status = quoit_layout_make(&job, 0, &boot->layout);
    if (status != QUOIT_OK)
        return status;
    boot->policy = quoit_wait_policy_for(1, quoit_limits_core_count());
    if (boot->layout.total_bytes > quoit_limits_file_bytes())
        return say_no_memory(boot, EFBIG); /* to try it would be a signal */
    boot->memory_fd = memfd_create("quoit-host", MFD_CLOEXEC);
    if (boot->memory_fd < 0 || ftruncate(boot->memory_fd, (off_t)boot->layout.total_bytes) != 0)
        return say_no_memory(boot, errno);
    return map_memory(boot);
}

static enum quoit_status say_to_launcher(const struct quoit_boot *boot, const struct quoit_boot_message *message)
{
    for (;;) {
        ssize_t n = send(boot->socket_fd, message, sizeof *message, MSG_NOSIGNAL);
        if (n == (ssize_t)sizeof *message)
            return QUOIT_OK;
        if (n < 0 && errno == EINTR)
            continue;
        return QUOIT_GONE;
    }
}

/* Receives one message of `kind` and up to QUOIT_BOOT_FDS_MAX descriptors. */
static enum quoit_status hear_launcher(const struct quoit_boot *boot, uint32_t kind,
                                       struct quoit_boot_message *message_out, int *fds_out, uint32_t *fd_count_out)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int) * QUOIT_BOOT_FDS_MAX)];
    } control;
    struct iovec part = {.iov_base = message_out, .iov_len = sizeof *message_out};
    struct msghdr packet = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    ssize_t n;
    do
        n = recvmsg(boot->socket_fd, &packet, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n == 0 || (n < 0 && errno == ECONNRESET))
        return QUOIT_GONE;
    if (n != (ssize_t)sizeof *message_out || message_out->magic != QUOIT_BOOT_MAGIC || message_out->kind != kind) {
        quoit_say("the launcher and this program do not understand each other: were both built from the same "
                  "version? [Q0303]");
        return QUOIT_INVALID;
    }
    uint32_t fd_count = 0;
    struct cmsghdr *header = CMSG_FIRSTHDR(&packet);
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS && fds_out) {
        fd_count = (uint32_t)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(fds_out, CMSG_DATA(header), fd_count * sizeof(int));
    }
    if (fd_count_out)
        *fd_count_out = fd_count;
    return QUOIT_OK;
}

/* The ports of a ring: the endpoints with the descriptors that came for them. */
static enum quoit_status take_ends(struct quoit_boot *boot, const struct quoit_boot_message *message, const int *fds,
                                   uint32_t fd_count)
{
    char name[QUOIT_BOOT_NAME_BYTES];
    uint32_t taken = 1;
    memcpy(name, message->body.layout.driver, sizeof name);
    name[sizeof name - 1] = '\0';
    if (boot->layout.job.host_count == 1)
        return fd_count == taken ? QUOIT_OK : QUOIT_INVALID;
    boot->driver = quoit_port_driver_find(name);
    if (!boot->driver) {
        quoit_say("the launcher chose the port driver %s, which this program's library does not have [Q0303]", name);
        return QUOIT_UNSUPPORTED;
    }
    for (uint32_t side = 0; side < QUOIT_SIDE_COUNT; side++) {
        struct quoit_port_endpoint *end = &boot->ends[side];
        *end = message->body.layout.ends[side];
        if (end->fd_count > QUOIT_PORT_ENDPOINT_FDS || end->fd_count > fd_count - taken)
            return QUOIT_INVALID;
        memcpy(end->fds, fds + taken, end->fd_count * sizeof fds[0]);
        taken += end->fd_count;
    }
    return taken == fd_count ? QUOIT_OK : QUOIT_INVALID;
}

static enum quoit_status take_layout(struct quoit_boot *boot, const struct quoit_boot_message *message, const int *fds,
                                     uint32_t fd_count)
{
    const struct quoit_job_config *job = &message->body.layout.job;
    enum quoit_status status = quoit_layout_make(job, message->body.layout.host, &boot->layout);
    if (status != QUOIT_OK)
        return status;
    boot->pe = message->body.layout.pe;
    boot->host = message->body.layout.host;
    boot->policy = message->body.layout.policy;
    if (fd_count == 0)
        return QUOIT_INVALID;
    boot->memory_fd = fds[0];
    status = take_ends(boot, message, fds, fd_count);
    return status == QUOIT_OK ? map_memory(boot) : status;
}

enum quoit_status quoit_boot_start(uint64_t data_bytes, struct quoit_boot *boot_out)
{
    struct quoit_boot *boot = boot_out;
    boot->socket_fd = -1;
    boot->memory_fd = -1;
    quoit_park_setup();
    const char *variable = getenv(QUOIT_BOOT_FD_VARIABLE);
    if (!variable)
        return start_alone(data_bytes, boot);
    boot->socket_fd = atoi(variable);
    if (fcntl(boot->socket_fd, F_SETFD, FD_CLOEXEC) != 0) {
        quoit_say("the connection to oshrun (descriptor %s) was closed before shmem_init: a wrapper must leave it open "
                  "[Q0304]",
                  variable);
        return QUOIT_GONE;
    }
    struct quoit_boot_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_HELLO};
    message.body.hello.data_bytes = data_bytes;
    enum quoit_status status = say_to_launcher(boot, &message);
    if (status != QUOIT_OK)
        return status;
    int fds[QUOIT_BOOT_FDS_MAX];
    uint32_t fd_count = 0;
    status = hear_launcher(boot, QUOIT_BOOT_LAYOUT, &message, fds, &fd_count);
    if (status != QUOIT_OK)
        return status;
    unsetenv(QUOIT_BOOT_FD_VARIABLE); /* programs that this one starts are jobs of their own */
    return take_layout(boot, &message, fds, fd_count);
}

enum quoit_status quoit_boot_ready(struct quoit_boot *boot)
{
    if (boot->socket_fd < 0)
        return QUOIT_OK;
    struct quoit_boot_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_READY};
    enum quoit_status status = say_to_launcher(boot, &message);
    if (status != QUOIT_OK)
        return status;
    return hear_launcher(boot, QUOIT_BOOT_GO, &message, NULL, NULL);
}

void quoit_boot_leaving(struct quoit_boot *boot, uint64_t meeting_count, bool is_exit)
{
    struct quoit_boot_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_LEAVING};
    message.body.leaving.meeting_count = meeting_count;
    message.body.leaving.is_exit = is_exit;
    if (boot->socket_fd >= 0 && say_to_launcher(boot, &message) != QUOIT_OK)
        quoit_log(QUOIT_LOG_WARN, "the launcher has gone before shmem_finalize");
}

void quoit_boot_finalized(struct quoit_boot *boot)
{
    struct quoit_boot_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_FINALIZED};
    if (boot->socket_fd >= 0 && say_to_launcher(boot, &message) != QUOIT_OK)
        quoit_log(QUOIT_LOG_WARN, "the launcher has gone before shmem_finalize");
}

/* Without a launcher that does it. */
static void say_place(uint64_t from)
{
    char program[32];
    struct quoit_place place;
    uint64_t before = from - 1; /* the call stands before the address it returns to */
    snprintf(program, sizeof program, "/proc/%d/exe", (int)getpid());
    quoit_place_find(program, &before, 1, quoit_clock_now_ns() + PLACE_NS, &place);
    if (place.line[0])
        fprintf(stderr, "  at %s%s%s\n", place.function, place.function[0] ? "() " : "", place.line);
}

void quoit_boot_abort(struct quoit_boot *boot, int status, const char *text)
{
    quoit_boot_abort_from(boot, status, text, 0);
}

void quoit_boot_abort_from(struct quoit_boot *boot, int status, const char *text, uint64_t from)
{
    if (boot->socket_fd >= 0) {
        struct quoit_boot_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_ABORT};
        message.body.abort.status = status;
        message.body.abort.from = from;
        snprintf(message.body.abort.text, sizeof message.body.abort.text, "%s", text);
        if (say_to_launcher(boot, &message) == QUOIT_OK)
            _exit(status);
    }
    if (text[0])
        quoit_say("%s", text);
    if (from)
        say_place(from);
    _exit(status);
}

void quoit_boot_end(struct quoit_boot *boot)
{
    if (boot->memory)
        munmap(boot->memory, boot->layout.total_bytes);
    boot->memory = NULL;
    if (boot->memory_fd >= 0)
        close(boot->memory_fd);
    boot->memory_fd = -1;
}
