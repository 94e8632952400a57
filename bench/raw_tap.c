/* SPDX-License-Identifier: BSD-3-Clause */
/* raw_tap MTU - the limit of an Ethernet device in user space: two TAP devices with the same offloads as quoit0, in two
 * network namespaces, and a process that copies between them, a thread for each direction. Prints the two namespaces as
 * paths, and copies until its input ends. bench/ethernet runs it. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "veth/tap.h"

#define FRAME_BYTES (68u << 10)
#define NETWORK     0x0a4d0000u /* 10.77.0.0/24, as quoit ring */

static int taps[2];

static void *copy(void *arg)
{
    int from = taps[arg != NULL], to = taps[arg == NULL];
    char *frame = malloc(FRAME_BYTES);
    ssize_t bytes;
    while (frame && (bytes = read(from, frame, FRAME_BYTES)) > 0)
        if (write(to, frame, (size_t)bytes) < 0)
            continue; /* the device is not up yet */
    return NULL;
}

/* A device in a new network namespace, whose descriptor is returned; -1: it failed. */
static int make(uint32_t index, uint32_t mtu)
{
    struct quoit_tap_config config = {.name = "quoit0",
                                      .mac = {2, 0, 0, 0, 0, (uint8_t)index},
                                      .mtu = mtu,
                                      .address = NETWORK + index + 1,
                                      .prefix = 24,
                                      .has_offload = true,
                                      .queue_count = 1};
    int fds[QUOIT_VETH_CHANNELS_MAX];
    if (unshare(CLONE_NEWNET) != 0 || quoit_tap_set_up("lo") != QUOIT_OK || quoit_tap_open(&config, fds) != QUOIT_OK ||
        fcntl(fds[0], F_SETFL, 0) != 0)
        return -1;
    taps[index] = fds[0];
    return open("/proc/self/ns/net", O_RDONLY);
}

int main(int argc, char **argv)
{
    uint32_t mtu = argc > 1 ? (uint32_t)atoi(argv[1]) : 1500;
    pthread_t threads[2];
    char end;
    for (uint32_t index = 0; index < 2; index++) {
        int namespace_fd = make(index, mtu);
        if (namespace_fd < 0) {
            fprintf(stderr, "raw_tap: cannot make a device in a network namespace (as root)\n");
            return 1;
        }
        printf("/proc/%d/fd/%d\n", getpid(), namespace_fd);
    }
    fflush(stdout);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, copy, i ? taps : NULL);
    while (read(STDIN_FILENO, &end, 1) == 1)
        ;
    return 0;
}
