/* SPDX-License-Identifier: BSD-3-Clause */
/* Moving into the namespaces of a host. */
#include "share/share.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
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

/* The groups of processes stay visible: limits of the machine are read there. */
static bool mount_over_sys(unsigned long flags)
{
    char path[32];
    int groups_fd = open("/sys/fs/cgroup", O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool is_new = mount("sysfs", "/sys", "sysfs", flags, NULL) == 0;
    int error = errno;
    snprintf(path, sizeof path, "/proc/self/fd/%d", groups_fd);
    if (is_new && groups_fd >= 0)
        (void)mount(path, "/sys/fs/cgroup", NULL, MS_BIND | MS_REC, NULL);
    if (groups_fd >= 0)
        close(groups_fd);
    errno = error;
    return is_new;
}

enum quoit_status quoit_share_renew_sysfs(void)
{
    unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
    struct statvfs old;
    if (statvfs("/sys", &old) == 0 && (old.f_flag & ST_RDONLY)) /* the kernel gives a user no more than there was */
        flags |= MS_RDONLY;
    bool is_new =
        unshare(CLONE_NEWNS) == 0 && mount("", "/", NULL, MS_SLAVE | MS_REC, NULL) == 0 && mount_over_sys(flags);
    return is_new ? QUOIT_OK : QUOIT_SYSTEM;
}

void quoit_share_close_place(struct quoit_share_place *place)
{
    for (uint32_t i = 0; i < QUOIT_SHARE_NAMESPACE_COUNT; i++) {
        if (place->fds[i] >= 0)
            close(place->fds[i]);
        place->fds[i] = -1;
    }
}
