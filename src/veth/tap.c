/* SPDX-License-Identifier: BSD-3-Clause */
#include "veth/tap.h"
#include "base/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define TUN_PATH     "/dev/net/tun"
#define QUEUE_FRAMES 1000 /* that the kernel holds for the device */

static struct ifreq request_of(const char *name)
{
    struct ifreq request = {0};
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    return request;
}

/* The first queue makes the device, further ones join it. */
static bool create(int fd, const struct quoit_tap_config *config)
{
    struct ifreq request = request_of(config->name);
    int header_bytes = QUOIT_VNET_BYTES;
    unsigned offload = config->has_offload ? TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN : 0;
    request.ifr_flags = (short)(IFF_TAP | IFF_NO_PI | IFF_VNET_HDR | (config->queue_count > 1 ? IFF_MULTI_QUEUE : 0));
    return ioctl(fd, TUNSETIFF, &request) == 0 && ioctl(fd, TUNSETVNETHDRSZ, &header_bytes) == 0 &&
           ioctl(fd, TUNSETOFFLOAD, offload) == 0;
}

static bool set_flags(int socket_fd, const char *name)
{
    struct ifreq request = request_of(name);
    if (ioctl(socket_fd, SIOCGIFFLAGS, &request) != 0)
        return false;
    request.ifr_flags |= IFF_UP | IFF_RUNNING;
    return ioctl(socket_fd, SIOCSIFFLAGS, &request) == 0;
}

static bool set_address(int socket_fd, const char *name, unsigned long call, uint32_t address)
{
    struct ifreq request = request_of(name);
    const struct sockaddr_in internet = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};
    memcpy(&request.ifr_addr, &internet, sizeof internet);
    return ioctl(socket_fd, call, &request) == 0;
}

static bool set_number(int socket_fd, const char *name, unsigned long call, int number)
{
    struct ifreq request = request_of(name);
    request.ifr_mtu = number; /* the queue length shares the union */
    return ioctl(socket_fd, call, &request) == 0;
}

static bool set_mac(int socket_fd, const struct quoit_tap_config *config)
{
    struct ifreq request = request_of(config->name);
    request.ifr_hwaddr.sa_family = ARPHRD_ETHER;
    memcpy(request.ifr_hwaddr.sa_data, config->mac, sizeof config->mac);
    return ioctl(socket_fd, SIOCSIFHWADDR, &request) == 0;
}

static bool configure(int socket_fd, const struct quoit_tap_config *config)
{
    uint32_t mask = config->prefix == 0 ? 0 : UINT32_MAX << (32 - config->prefix);
    /* Only root of the machine may set the queue length by this call; in a user's namespace it stays at 500. */
    bool has_length = set_number(socket_fd, config->name, SIOCSIFTXQLEN, QUEUE_FRAMES) || errno == EPERM;
    return has_length && set_mac(socket_fd, config) &&
           set_number(socket_fd, config->name, SIOCSIFMTU, (int)config->mtu) &&
           (config->address == 0 || (set_address(socket_fd, config->name, SIOCSIFADDR, config->address) &&
                                     set_address(socket_fd, config->name, SIOCSIFNETMASK, mask))) &&
           set_flags(socket_fd, config->name);
}

static int open_queue(const struct quoit_tap_config *config)
{
    int fd = open(TUN_PATH, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || create(fd, config))
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

enum quoit_status quoit_tap_open(const struct quoit_tap_config *config, int fds_out[QUOIT_VETH_CHANNELS_MAX])
{
    uint32_t count = 0;
    while (count < config->queue_count && (fds_out[count] = open_queue(config)) >= 0)
        count++;
    int socket_fd = count < config->queue_count ? -1 : socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (socket_fd >= 0 && configure(socket_fd, config)) {
        close(socket_fd);
        return QUOIT_OK;
    }
    int error = errno;
    quoit_say("cannot make the Ethernet device %s (%s): %s%s [Q0601]", config->name, TUN_PATH, strerror(error),
              error == ENOENT ? "; load it by: modprobe tun" : "");
    if (socket_fd >= 0)
        close(socket_fd);
    while (count > 0)
        close(fds_out[--count]);
    return QUOIT_SYSTEM;
}

void quoit_tap_set_carrier(int fd, bool has_carrier)
{
    int carrier = has_carrier;
    int result = ioctl(fd, TUNSETCARRIER, &carrier);
    (void)result;
}

enum quoit_status quoit_tap_set_up(const char *name)
{
    int socket_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool is_up = socket_fd >= 0 && set_flags(socket_fd, name);
    if (!is_up)
        quoit_say("cannot bring the device %s up: %s [Q0601]", name, strerror(errno));
    if (socket_fd >= 0)
        close(socket_fd);
    return is_up ? QUOIT_OK : QUOIT_SYSTEM;
}
