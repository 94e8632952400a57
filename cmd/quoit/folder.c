/* SPDX-License-Identifier: BSD-3-Clause */
#include "folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void empty(const char *path)
{
    DIR *folder = opendir(path);
    for (const struct dirent *entry; folder && (entry = readdir(folder));)
        unlinkat(dirfd(folder), entry->d_name, 0); /* fails for "." and ".." */
    if (folder)
        closedir(folder);
}

static void keep(const char *path, int fd)
{
    char byte;
    setsid();
    while (read(fd, &byte, 1) < 0 && errno == EINTR)
        continue;
    empty(path);
    rmdir(path);
    _exit(0);
}

static bool start_keeper(struct folder *folder)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    fflush(NULL);
    folder->keeper = fork();
    if (folder->keeper == 0) {
        close(ends[1]);
        /* The keeper must not delay end of file on our output. */
        close(STDOUT_FILENO);
        close(STDERR_FILENO);
        keep(folder->path, ends[0]);
    }
    close(ends[0]);
    folder->keeper_fd = ends[1];
    if (folder->keeper < 0)
        close(ends[1]);
    return folder->keeper > 0;
}

bool folder_make(struct folder *folder)
{
    const char *where = getenv("TMPDIR");
    int length =
        snprintf(folder->path, sizeof folder->path, "%s/quoit-perf-XXXXXX", where && where[0] ? where : "/tmp");
    errno = ENAMETOOLONG;
    if ((size_t)length < sizeof folder->path && mkdtemp(folder->path)) {
        if (start_keeper(folder))
            return true;
        rmdir(folder->path);
    }
    perror("quoit perf: cannot make a temporary folder");
    folder->path[0] = '\0';
    return false;
}

void folder_remove(struct folder *folder)
{
    int status;
    if (!folder->path[0])
        return;
    close(folder->keeper_fd);
    while (waitpid(folder->keeper, &status, 0) < 0 && errno == EINTR)
        continue;
    folder->path[0] = '\0';
}
