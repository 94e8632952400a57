/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/leader.h"
#include "boot/abstract.h"
#include "env/clock.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define TRIES      50 /* a leader has bound its name, and listens at once */
#define TRY_NS     200000u
#define SILENCE_MS 250 /* without another process: those that are missing have ended, or come later */

enum quoit_leader_role quoit_leader_meet(const char *name, int *fd_out)
{
    for (int i = 0; i < TRIES; i++) {
        enum quoit_status status = quoit_abstract_listen(name, fd_out);
        if (status == QUOIT_OK)
            return QUOIT_LEADER_SELF;
        if (status == QUOIT_FULL)
            status = quoit_abstract_connect(name, geteuid(), fd_out);
        if (status == QUOIT_OK)
            return QUOIT_LEADER_OTHER;
        if (status != QUOIT_GONE)
            break;
        quoit_clock_sleep_ns(TRY_NS);
    }
    *fd_out = -1;
    return QUOIT_LEADER_NONE;
}

bool quoit_leader_receive(int fd, void *bytes_out, size_t bytes)
{
    ssize_t n;
    do
        n = recv(fd, bytes_out, bytes, MSG_TRUNC); /* the length of the whole message */
    while (n < 0 && errno == EINTR);
    close(fd);
    return n == (ssize_t)bytes;
}

void quoit_leader_publish(int fd, const void *word, size_t bytes, uint32_t count)
{
    struct pollfd comes = {.fd = fd, .events = POLLIN};
    while (count > 0) {
        int other = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
        if (other < 0) {
            int n = poll(&comes, 1, SILENCE_MS);
            if (n == 0 || (n < 0 && errno != EINTR))
                break;
            continue;
        }
        if (quoit_abstract_is_own(other)) {
            (void)!send(other, word, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
            count--;
        }
        close(other);
    }
    close(fd);
}
