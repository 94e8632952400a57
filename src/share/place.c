/* SPDX-License-Identifier: BSD-3-Clause */
/* Moving into the namespaces of a host. */
#include "share/share.h"

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

/* The kernel refuses to enter the user namespace that the process is in. */
static bool is_own_users(int fd)
{
    struct stat own, other;
    return fstat(fd, &other) == 0 && stat("/proc/self/ns/user", &own) == 0 && own.st_ino == other.st_ino &&
           own.st_dev == other.st_dev;
}

enum quoit_status quoit_share_enter_place(const struct quoit_share_place *place)
{
    int users = place->fds[QUOIT_SHARE_USERS];
    bool is_there = (is_own_users(users) || setns(users, CLONE_NEWUSER) == 0) &&
                    setns(place->fds[QUOIT_SHARE_NETWORK], CLONE_NEWNET) == 0 &&
                    setns(place->fds[QUOIT_SHARE_HOST_NAME], CLONE_NEWUTS) == 0;
    return is_there ? QUOIT_OK : QUOIT_SYSTEM;
}

void quoit_share_close_place(struct quoit_share_place *place)
{
    for (uint32_t i = 0; i < QUOIT_SHARE_NAMESPACE_COUNT; i++) {
        if (place->fds[i] >= 0)
            close(place->fds[i]);
        place->fds[i] = -1;
    }
}
