/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: a PE accepts only a consistent layout from its launcher, and reports any other. Method: the message of a job of
 * two PEs on one host with the job's memory, mutated by the input. Input: the number of descriptors sent with it, its
 * length, then mutations. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "boot/boot.h"
#include "env/descriptors.h"
#include "fuzz.h"

#define FIRST_FD 200 /* descriptors opened during a run are above the library's own */

static void send_message(int fd, const struct quoit_boot_message *message, size_t bytes, int memory_fd,
                         uint32_t fd_count)
{
    int fds[QUOIT_BOOT_FDS_MAX];
    for (uint32_t i = 0; i < QUOIT_BOOT_FDS_MAX; i++)
        fds[i] = memory_fd;
    must(quoit_send_with_descriptors(fd, message, bytes, fds, fd_count, 0) >= 0);
}

static void check(const struct quoit_boot *boot)
{
    const struct quoit_layout *layout = &boot->layout;
    must(layout->job.host_count >= 1);
    must(boot->host < layout->job.host_count);
    must(boot->pe < layout->job.pe_count);
    must(boot->pe - layout->first_pe < layout->local_count);
    must(boot->memory != NULL);
    must(layout->job.data_bytes <= layout->total_bytes && layout->job.heap_bytes <= layout->total_bytes);
    must(layout->segment_heap + layout->job.heap_bytes <= layout->segment_stride);
    must(layout->segment_data + layout->job.data_bytes <= layout->segment_heap);
    must(quoit_layout_segment(layout, layout->local_count) <= layout->total_bytes);
    munmap(boot->memory, layout->total_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct quoit_boot_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_LAYOUT};
    struct quoit_boot boot;
    char number[16];
    int ends[2], own[2];
    if (bytes < 2)
        return 0;
    message.body.layout.version = *quoit_version();
    message.body.layout.job = (struct quoit_job_config){.host_count = 1,
                                                        .pe_count = 2,
                                                        .lane_count = 1,
                                                        .slot_count = 4,
                                                        .chunk_bytes = 256,
                                                        .data_bytes = 8192,
                                                        .heap_bytes = 2u << 20};
    message.body.layout.pe = 1;
    fuzz_change(&message, sizeof message, data + 2, bytes - 2);
    must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    int memory_fd = memfd_create("fuzz", MFD_CLOEXEC);
    must(ftruncate(memory_fd, 1 << 20) == 0);
    for (int i = 0; i < 2; i++)
        own[i] = fcntl(ends[i], F_DUPFD_CLOEXEC, FIRST_FD);
    send_message(own[1], &message, data[1] == 0 ? sizeof message : sizeof message * data[1] / 256, memory_fd,
                 data[0] % (QUOIT_BOOT_FDS_MAX + 1));
    snprintf(number, sizeof number, "%d", own[0]);
    setenv(QUOIT_BOOT_FD_VARIABLE, number, 1);
    memset(&boot, 0, sizeof boot);
    if (quoit_boot_start(8192, &boot) == QUOIT_OK)
        check(&boot);
    for (int i = 0; i < 2; i++)
        close(ends[i]);
    close(memory_fd);
    close_range(FIRST_FD, ~0u, 0);
    for (int fd = 3; fd < 32; fd++) { /* descriptors of a rejected message */
        char link[64], path[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, path, sizeof path - 1);
        if (length > 12 && strncmp(path, "/memfd:fuzz", 11) == 0)
            close(fd);
    }
    return 0;
}
