/* SPDX-License-Identifier: BSD-3-Clause */
/* The process of a host. */
#include "ring.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/log.h"
#include "base/step.h"
#include "env/clock.h"
#include "env/limits.h"
#include "env/thread.h"
#include "ring/route.h"
#include "veth/tap.h"

#define KILL_MS 2000 /* for a process to end that was killed */

static bool write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool is_written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        close(fd);
    return is_written;
}

/* A user other than root becomes root of a new user namespace, which owns the network namespace. */
bool ring_enter_namespaces(void)
{
    char uid_map[40], gid_map[40];
    snprintf(uid_map, sizeof uid_map, "0 %u 1", geteuid());
    snprintf(gid_map, sizeof gid_map, "0 %u 1", getegid());
    if (unshare(CLONE_NEWNET | CLONE_NEWUTS) == 0)
        return true;
    return errno == EPERM && unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWUTS) == 0 &&
           write_file("/proc/self/setgroups", "deny") && write_file("/proc/self/uid_map", uid_map) &&
           write_file("/proc/self/gid_map", gid_map);
}

static int open_namespace(pid_t pid, const char *kind)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)pid, kind);
    return open(path, O_RDONLY | O_CLOEXEC);
}

bool ring_open_place(pid_t pid, struct ring_place *place_out)
{
    *place_out = (struct ring_place){.network_fd = open_namespace(pid, "net"), .name_fd = open_namespace(pid, "uts")};
    if (place_out->network_fd >= 0 && place_out->name_fd >= 0)
        return true;
    ring_close_place(place_out);
    return false;
}

void ring_close_place(struct ring_place *place)
{
    if (place->network_fd >= 0)
        close(place->network_fd);
    if (place->name_fd >= 0)
        close(place->name_fd);
    *place = (struct ring_place){.network_fd = -1, .name_fd = -1};
}

static bool is_in(const char *pid, const char *kind, const struct stat *namespace)
{
    struct stat own;
    char path[300];
    snprintf(path, sizeof path, "/proc/%.20s/ns/%s", pid, kind);
    return stat(path, &own) == 0 && own.st_ino == namespace->st_ino && own.st_dev == namespace->st_dev;
}

/* Returns how many were signalled. One that is ending is in no namespace any more. */
static uint32_t kill_processes_once(const struct ring_place *place)
{
    uint32_t count = 0;
    struct stat network, name;
    bool is_known = fstat(place->network_fd, &network) == 0 && fstat(place->name_fd, &name) == 0;
    DIR *folder = is_known ? opendir("/proc") : NULL;
    struct dirent *entry;
    while (folder && (entry = readdir(folder)) != NULL) {
        pid_t pid = (pid_t)atoi(entry->d_name);
        if (pid > 1 && pid != getpid() && (is_in(entry->d_name, "net", &network) || is_in(entry->d_name, "uts", &name)))
            count += kill(pid, SIGKILL) == 0;
    }
    if (folder)
        closedir(folder);
    return count;
}

/* What has been signalled may have forked just before. */
void ring_kill_processes_in(const struct ring_place *place)
{
    for (uint32_t ms = 0; ms < KILL_MS && kill_processes_once(place) != 0; ms++)
        quoit_clock_sleep_ns(1000000);
}

enum quoit_status ring_describe_link(const struct ring *ring, uint32_t host, enum quoit_side side,
                                     struct quoit_port_endpoint *endpoint_out)
{
    const struct quoit_port_site site = {
        .link_fd = ring->bridge_fds[side], .peer_memory_fd = -1, .side = side == QUOIT_RIGHT ? 0 : 1};
    return ring->plan.is_joined ? quoit_port_driver_describe(ring->driver, &site, endpoint_out)
                                : quoit_share_describe(ring->share, host, site.side, endpoint_out);
}

static enum quoit_status open_device(const struct ring *ring, const struct ring_host *host, uint32_t number,
                                     int fds_out[QUOIT_VETH_CHANNELS_MAX])
{
    struct quoit_tap_config tap = {.name = RING_DEVICE,
                                   .mtu = ring->plan.mtu,
                                   .address = ring->plan.address + host->index + 1,
                                   .prefix = ring->plan.prefix,
                                   .has_offload = ring->plan.has_offload,
                                   .queue_count = ring->plan.queue_count};
    quoit_veth_mac(number, host->index, tap.mac);
    enum quoit_status status = quoit_tap_set_up("lo");
    return status == QUOIT_OK ? quoit_tap_open(&tap, fds_out) : status;
}

static enum quoit_status open_service(const struct ring *ring, const struct ring_host *host,
                                      struct quoit_service **service_out)
{
    struct ring_memory *memory = host->memory;
    struct quoit_port_endpoint ends[QUOIT_SIDE_COUNT];
    struct quoit_service_config config = {.host = host->index,
                                          .host_count = ring->plan.host_count,
                                          .records = memory->links,
                                          .park = &memory->manager,
                                          .park_offset = offsetof(struct ring_memory, manager)};
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        enum quoit_status status = ring_describe_link(ring, host->index, side, &ends[side]);
        if (status != QUOIT_OK)
            return status;
        config.ports[side] = (struct quoit_port_config){
            .driver = ring->driver, .memory = {memory, host->bytes}, .endpoint = &ends[side]};
    }
    return quoit_service_open(&config, service_out);
}

/* 24 bits of the MAC addresses, which so differ between rings. */
static uint32_t mac_number_of(const char *name)
{
    return quoit_digest(name, strlen(name)) & 0xffffffu;
}

void ring_detach_output(void)
{
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO && null_fd >= 0; fd++)
        dup2(null_fd, fd);
    close(null_fd);
}

/* SIGTERM: the keeper has died, or the host is told to end. Kills what runs here. */
static void *wait_for_end(void *arg)
{
    sigset_t signals;
    int number;
    (void)arg;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigwait(&signals, &number);
    struct ring_place here;
    if (ring_open_place(getpid(), &here))
        ring_kill_processes_in(&here);
    _exit(0);
}

static bool start_thread(void *(*run)(void *), void *arg)
{
    pthread_t thread;
    enum quoit_status status = quoit_thread_status(pthread_create(&thread, NULL, run, arg));
    if (status != QUOIT_OK)
        quoit_say("cannot start: %s [Q0603]", quoit_status_text(status));
    return status == QUOIT_OK;
}

/* In the new namespaces of an emulated host. */
static bool set_up_namespaces(const char *name)
{
    sigset_t signals;
    (void)!sethostname(name, strlen(name)); /* shown to users only */
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    return start_thread(wait_for_end, NULL);
}

static void *manage(void *arg)
{
    _Atomic uint32_t never = 0; /* the host ends by a signal */
    if (quoit_service_manage(arg, &never) != QUOIT_OK)
        exit(1); /* the keeper restarts the host */
    return NULL;
}

/* The links of a new emulated ring come up at once; who is late for that, the keeper reports. On bridges other machines
 * may boot later or never, and a host that starts again may have lost a cable meanwhile: the device exists and gets its
 * carrier with the first link. */
static bool start_service(const struct ring *ring, const struct ring_host *host, int device_fd,
                          struct quoit_service *service)
{
    bool waits = !ring->plan.is_joined && host->start_count == 0;
    if (!waits)
        quoit_tap_set_carrier(device_fd, false);
    return (!waits || quoit_service_start(service, UINT64_MAX) == QUOIT_OK) && start_thread(manage, service);
}

int ring_host_run(const struct ring *ring, const struct ring_host *host, pid_t keeper)
{
    struct ring_memory *memory = host->memory;
    struct quoit_service *service;
    struct quoit_veth *veth;
    char name[24];
    snprintf(name, sizeof name, "host%u", host->index);
    quoit_log_setup(ring->plan.is_joined ? QUOIT_LOG_INFO : QUOIT_LOG_WARN, name);
    prctl(PR_SET_NAME, "quoit-host");
    if (!ring->plan.is_joined && !ring_enter_namespaces()) {
        quoit_say("cannot make a network namespace: %s; be root, or have the administrator allow user namespaces "
                  "(sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, "
                  "kernel.apparmor_restrict_unprivileged_userns) [Q0602]",
                  strerror(errno));
        return 1;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* entering a user namespace clears it */
    if ((!ring->plan.is_joined && !set_up_namespaces(name)) || getppid() != keeper)
        return 1;
    quoit_step("ringhost", host->index, "begin");
    memset(memory->links, 0, sizeof memory->links);
    uint32_t number = mac_number_of(ring->plan.name);
    struct quoit_veth_config config = {
        .records = memory->links,
        .memory = memory,
        .offset = host->veth_offset,
        .host = host->index,
        .host_count = ring->plan.host_count,
        .ring = number,
        .channel_count = ring->plan.queue_count,
        .dma_bytes = ring->plan.dma_bytes,
        .policy = quoit_wait_policy_for((ring_host_end(&ring->plan) - ring_host_begin(&ring->plan)) * 2,
                                        quoit_limits_core_count()),
    };
    if (open_device(ring, host, number, config.device_fds) != QUOIT_OK ||
        open_service(ring, host, &service) != QUOIT_OK)
        return 1;
    config.service = service;
    if (quoit_veth_open(&config, &veth) != QUOIT_OK || !start_service(ring, host, config.device_fds[0], service))
        return 1;
    if (!ring->plan.is_joined) {
        ring_detach_output();
        prctl(PR_SET_PDEATHSIG, SIGTERM); /* now programs may come, which end with it (wait_for_end) */
        if (getppid() != keeper)
            return 1;
    }
    atomic_store(&memory->is_ready, 1);
    return quoit_veth_run(veth) == QUOIT_OK ? 0 : 1;
}
