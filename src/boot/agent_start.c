/* SPDX-License-Identifier: BSD-3-Clause */
/* What a PE gives to the agent, and the agent takes. */
#include "boot/abstract.h"
#include "boot/agent.h"
#include "boot/program.h"
#include "base/log.h"
#include "env/descriptors.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum quoit_status quoit_agent_listen(char name_out[QUOIT_AGENT_NAME_BYTES], int *listen_fd_out)
{
    uint64_t random[2];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return QUOIT_SYSTEM;
    snprintf(name_out, QUOIT_AGENT_NAME_BYTES, "quoit-%016llx%016llx", (unsigned long long)random[0],
             (unsigned long long)random[1]);
    enum quoit_status status = quoit_abstract_listen(name_out, listen_fd_out);
    if (status != QUOIT_OK)
        quoit_say("cannot make the socket on which the PEs of a host meet: %s [Q0312]", strerror(errno));
    return status;
}

enum quoit_status quoit_agent_connect(const char *name, int *fd_out)
{
    enum quoit_status status = quoit_abstract_connect(name, geteuid(), fd_out);
    if (status == QUOIT_OK || status == QUOIT_GONE)
        return status;
    quoit_say("cannot connect to PE 0: %s [Q0312]", status == QUOIT_INVALID ? "it is another user's" : strerror(errno));
    return QUOIT_SYSTEM;
}

static void fill(struct quoit_agent_start *start, const struct quoit_boot *boot, const struct quoit_hosts *hosts,
                 const pid_t *processes)
{
    const struct quoit_boot_network *network = &boot->network;
    start->magic = QUOIT_BOOT_MAGIC;
    start->version = *quoit_version();
    start->host = hosts->host_of_rank[boot->exchange.rank];
    start->log_level = network->log_level;
    start->has_loopback = network->has_loopback;
    start->launcher = (int32_t)boot->exchange.launcher;
    start->heap_bytes_asked = boot->heap_bytes_asked;
    start->link_timeout_ns = network->link_timeout_ns;
    start->network_limit_ns = network->network_limit_ns;
    snprintf(start->driver, sizeof start->driver, "%s", network->driver);
    snprintf(start->provider, sizeof start->provider, "%s", network->provider);
    snprintf(start->device, sizeof start->device, "%s", network->device);
    snprintf(start->ports, sizeof start->ports, "%s", network->ports);
    start->hosts = *hosts;
    start->hosts.host_of_rank = NULL;
    for (uint32_t rank = 0, local = 0; rank < hosts->rank_count; rank++)
        if (hosts->host_of_rank[rank] == start->host)
            start->pes[local++] = (struct quoit_agent_pe){.rank = rank, .process = processes[rank]};
}

/* A file with what the agent must know. -1: errno is set. */
static int write_start(const struct quoit_boot *boot, const struct quoit_hosts *hosts, const pid_t *processes)
{
    uint32_t pe_count = hosts->list[hosts->host_of_rank[boot->exchange.rank]].pe_count;
    size_t bytes = sizeof(struct quoit_agent_start) + pe_count * sizeof(struct quoit_agent_pe);
    struct quoit_agent_start *start = calloc(1, bytes);
    int fd = start ? memfd_create("quoit-agent", MFD_CLOEXEC) : -1;
    if (fd >= 0) {
        fill(start, boot, hosts, processes);
        if (write(fd, start, bytes) != (ssize_t)bytes) {
            close(fd);
            fd = -1;
        }
    }
    free(start);
    return fd;
}

enum quoit_status quoit_agent_start(const struct quoit_boot *boot, const struct quoit_hosts *hosts,
                                    const pid_t *processes, int listen_fd, int *fd_out, pid_t *pid_out)
{
    const struct quoit_boot_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_START};
    char found[PATH_MAX];
    const char *path = quoit_program_is_carried() ? NULL : found;
    if (path && !quoit_program_find(found)) {
        close(listen_fd);
        quoit_say(
            "cannot start the agent of this host: there is no oshrun of Quoit beside %s, nor in PATH: add the folder "
            "bin of its installation to PATH on each host [Q0239]",
            found[0] ? found : "the library");
        return QUOIT_SYSTEM;
    }
    const int fds[] = {listen_fd, write_start(boot, hosts, processes)};
    int error = fds[1] < 0 ? errno : quoit_program_spawn(path, QUOIT_AGENT_OPTION, fd_out, pid_out);
    if (error == 0) /* one that has ended already is detected by who watches it */
        (void)quoit_send_with_descriptors(*fd_out, &message, sizeof message, fds, 2, 0);
    close(listen_fd);
    if (fds[1] >= 0)
        close(fds[1]);
    if (error == 0)
        return QUOIT_OK;
    quoit_say("cannot start the agent of this host, %s " QUOIT_AGENT_OPTION ": %s [Q0239]",
              path ? path : "this program as", strerror(error));
    return QUOIT_SYSTEM;
}

/* The file that the lowest PE has written. NULL: it is of another version of Quoit. */
static const struct quoit_agent_start *map_start(int fd)
{
    struct stat stat;
    if (fstat(fd, &stat) != 0 || stat.st_size < (off_t)sizeof(struct quoit_agent_start))
        return NULL;
    const struct quoit_agent_start *start = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (start == MAP_FAILED)
        return NULL;
    if (start->magic != QUOIT_BOOT_MAGIC || !quoit_versions_fit(quoit_version(), &start->version) ||
        start->hosts.count > QUOIT_JOB_HOSTS_MAX || start->host >= start->hosts.count)
        return NULL;
    size_t pe_count = start->hosts.list[start->host].pe_count;
    bool is_whole = (size_t)stat.st_size == sizeof *start + pe_count * sizeof start->pes[0];
    return is_whole ? start : NULL;
}

const struct quoit_agent_start *quoit_agent_receive_start(int *listen_fd_out)
{
    struct quoit_boot_message message;
    int fds[2];
    struct quoit_ancillary came = {.fds = fds, .fd_max = 2};
    ssize_t n = quoit_receive_with_descriptors(QUOIT_PROGRAM_FD, &message, sizeof message, &came, 0);
    if (n == 0)
        return NULL;
    bool is_whole = n == (ssize_t)sizeof message && message.magic == QUOIT_BOOT_MAGIC &&
                    message.kind == QUOIT_BOOT_START && came.fd_count == 2;
    const struct quoit_agent_start *start = is_whole ? map_start(fds[1]) : NULL;
    if (start) {
        close(fds[1]);
        *listen_fd_out = fds[0];
    } else {
        quoit_say("a message of another version of Quoit to the agent of a host: is this the oshrun of its library? "
                  "[Q0311]");
    }
    return start;
}
