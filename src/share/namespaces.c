/* SPDX-License-Identifier: BSD-3-Clause */
/* Moving a process into the namespaces of a host. */
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
static bool is_in_user_namespace(int fd)
{
    struct stat own, other;
    return fstat(fd, &other) == 0 && stat("/proc/self/ns/user", &own) == 0 && own.st_ino == other.st_ino &&
           own.st_dev == other.st_dev;
}

enum quoit_status quoit_share_enter_namespaces(const struct quoit_share_namespaces *namespaces)
{
    int user_fd = namespaces->fds[QUOIT_SHARE_NS_USER];
    bool is_inside = (is_in_user_namespace(user_fd) || setns(user_fd, CLONE_NEWUSER) == 0) &&
                     setns(namespaces->fds[QUOIT_SHARE_NS_NET], CLONE_NEWNET) == 0 &&
                     setns(namespaces->fds[QUOIT_SHARE_NS_UTS], CLONE_NEWUTS) == 0;
    return is_inside ? QUOIT_OK : QUOIT_SYSTEM;
}

/* Keeps the control groups visible: limits of the machine are read there. */
static bool mount_over_sys(unsigned long flags)
{
    char path[32];
    int cgroup_fd = open("/sys/fs/cgroup", O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool is_mounted = mount("sysfs", "/sys", "sysfs", flags, NULL) == 0;
    int error = errno;
    snprintf(path, sizeof path, "/proc/self/fd/%d", cgroup_fd);
    if (is_mounted && cgroup_fd >= 0)
        (void)mount(path, "/sys/fs/cgroup", NULL, MS_BIND | MS_REC, NULL);
    if (cgroup_fd >= 0)
        close(cgroup_fd);
    errno = error;
    return is_mounted;
}

enum quoit_status quoit_share_mount_sysfs(void)
{
    unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
    struct statvfs old;
    if (statvfs("/sys", &old) == 0 && (old.f_flag & ST_RDONLY)) /* a user may not mount it with more rights */
        flags |= MS_RDONLY;
    bool is_mounted =
        unshare(CLONE_NEWNS) == 0 && mount("", "/", NULL, MS_SLAVE | MS_REC, NULL) == 0 && mount_over_sys(flags);
    return is_mounted ? QUOIT_OK : QUOIT_SYSTEM;
}

void quoit_share_close_namespaces(struct quoit_share_namespaces *namespaces)
{
    for (uint32_t i = 0; i < QUOIT_SHARE_NS_COUNT; i++) {
        if (namespaces->fds[i] >= 0)
            close(namespaces->fds[i]);
        namespaces->fds[i] = -1;
    }
}
