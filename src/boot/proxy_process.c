/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/proxy_process.h"
#include "boot/protocol.h"
#include "base/log.h"
#include "env/descriptors.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void quoit_proxy_process_send(int fd, const struct quoit_proxy_message *message)
{
    (void)quoit_send_with_descriptors(fd, message, sizeof *message, NULL, 0, 0);
}

void quoit_proxy_process_send_kind(int fd, enum quoit_proxy_kind kind)
{
    quoit_proxy_process_send(fd, &(struct quoit_proxy_message){.magic = QUOIT_BOOT_MAGIC, .kind = kind});
}

void quoit_proxy_process_offer(int fd, const struct quoit_proxy_message *message)
{
    (void)quoit_send_with_descriptors(fd, message, sizeof *message, NULL, 0, MSG_DONTWAIT);
}

void quoit_proxy_process_send_frame(int fd, uint32_t host, enum quoit_proxy_how how, enum quoit_control_kind kind,
                                    const union quoit_control_body *body)
{
    struct quoit_proxy_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_PROXY_FRAME};
    message.body.frame.host = host;
    message.body.frame.how = how;
    message.body.frame.kind = kind;
    if (body)
        memcpy(&message.body.frame.body, body, (size_t)quoit_control_bytes(kind));
    (how == QUOIT_PROXY_OFFERED ? quoit_proxy_process_offer : quoit_proxy_process_send)(fd, &message);
}

static void send_start(const struct quoit_boot *host, int board_fd, uint64_t tag, int fd)
{
    const struct quoit_boot_network *network = &host->network;
    struct quoit_proxy_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_PROXY_START};
    message.body.start.job = host->layout.job;
    message.body.start.machine = ((const struct quoit_host_header *)host->memory)->machine;
    message.body.start.host = host->layout.host;
    message.body.start.starter = (int32_t)getpid();
    message.body.start.log_level = network->log_level;
    message.body.start.tag = tag;
    message.body.start.link_timeout_ns = network->link_timeout_ns;
    message.body.start.network_limit_ns = network->network_limit_ns;
    snprintf(message.body.start.driver, QUOIT_PROXY_TEXT_BYTES, "%s",
             strcmp(network->driver, "ring") == 0 ? "auto" : network->driver);
    snprintf(message.body.start.provider, QUOIT_PROXY_TEXT_BYTES, "%s", network->provider);
    snprintf(message.body.start.devices, QUOIT_DEVICES_BYTES, "%s", network->device);
    snprintf(message.body.start.network_ports, QUOIT_PROXY_TEXT_BYTES, "%s", network->ports);
    message.body.start.carries_frames = true;
    message.body.start.has_network = true;
    message.body.start.dma_bytes = QUOIT_DMA_NEVER;
    const int fds[] = {host->memory_fd, board_fd};
    (void)quoit_send_with_descriptors(fd, &message, sizeof message, fds, 2, 0);
}

enum quoit_status quoit_proxy_process_start(const struct quoit_boot *host, int board_fd, uint64_t tag, int *fd_out,
                                            pid_t *pid_out)
{
    int error = quoit_program_spawn(NULL, QUOIT_PROXY_OPTION, fd_out, pid_out);
    if (error != 0) {
        quoit_say("cannot start the proxy of a host, oshrun " QUOIT_PROXY_OPTION ": %s [Q0314]", strerror(error));
        return QUOIT_SYSTEM;
    }
    send_start(host, board_fd, tag, *fd_out);
    return QUOIT_OK;
}
