/* SPDX-License-Identifier: BSD-3-Clause */
/* machines NAME HOST HOSTS LEFT RIGHT: answers for a ring of machines as quoit ring join does, with ports that need not
 * be any, until its input ends. Prints a line when it does. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "share/share.h"

int main(int argc, char **argv)
{
    if (argc != 6)
        return 2;
    struct quoit_share_config config = {
        .driver = "linux",
        .host_count = (uint32_t)atoi(argv[3]),
        .machines = {.host = (uint32_t)atoi(argv[2]), .address = 10u << 24 | 77u << 16},
    };
    struct quoit_shared_ring *ring;
    struct quoit_share_server *server;
    char path[QUOIT_SHARE_PATH_BYTES];
    strncpy(config.machines.left, argv[4], sizeof config.machines.left - 1);
    strncpy(config.machines.right, argv[5], sizeof config.machines.right - 1);
    quoit_share_path(geteuid(), argv[1], path);
    if (quoit_shared_ring_open(&config, &ring) != QUOIT_OK ||
        quoit_share_server_open(ring, path, true, &server) != QUOIT_OK)
        return 1;
    puts("answers");
    fflush(stdout);
    struct pollfd polled[] = {{.fd = quoit_share_server_fd(server), .events = POLLIN}, {.fd = 0, .events = POLLIN}};
    while (poll(polled, 2, -1) > 0 && polled[1].revents == 0)
        quoit_share_server_step(server);
    quoit_share_server_close(server);
    quoit_shared_ring_close(ring);
    return 0;
}
