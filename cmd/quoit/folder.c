/* SPDX-License-Identifier: BSD-3-Clause */
#include "folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRIES 100

static void empty(const char *path)
{
    DIR *folder = opendir(path);
    for (const struct dirent *entry; folder && (entry = readdir(folder));)
        unlinkat(dirfd(folder), entry->d_name, 0); /* fails for "." and ".." */
    if (folder)
        closedir(folder);
}

/* What the keeper says of the directory that it made. */
struct made {
    int error; /* errno's; 0: it is there */
    char path[sizeof((struct folder *)0)->path];
};

static _Noreturn void keep(struct made *made, int fd)
{
    char byte;
    setsid();
    made->error = mkdtemp(made->path) ? 0 : errno;
    if (send(fd, made, sizeof *made, MSG_NOSIGNAL) == (ssize_t)sizeof *made)
        while (read(fd, &byte, 1) < 0 && errno == EINTR)
            continue;
    /* A program that was started there may outlive ours, and write a file after its directory was emptied. */
    for (int i = 0; made->error == 0 && i < TRIES && rmdir(made->path) != 0 && errno == ENOTEMPTY; i++)
        empty(made->path);
    _exit(0);
}

/* False: errno says why, and nothing is left. */
static bool start_keeper(struct folder *folder, struct made *made)
{
    int ends[2], status;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return false;
    fflush(NULL);
    folder->keeper = fork();
    if (folder->keeper == 0) {
        close(ends[1]);
        /* The keeper must not delay end of file on our output. */
        close(STDOUT_FILENO);
        close(STDERR_FILENO);
        keep(made, ends[0]);
    }
    made->error = errno;
    close(ends[0]);
    folder->keeper_fd = ends[1];
    if (folder->keeper > 0) {
        ssize_t length;
        while ((length = read(ends[1], made, sizeof *made)) < 0 && errno == EINTR)
            continue;
        if (length != (ssize_t)sizeof *made)
            made->error = ECHILD;
    }
    if (made->error == 0)
        return true;
    close(ends[1]);
    while (folder->keeper > 0 && waitpid(folder->keeper, &status, 0) < 0 && errno == EINTR)
        continue;
    errno = made->error;
    return false;
}

bool folder_make(struct folder *folder)
{
    struct made made;
    const char *where = getenv("TMPDIR");
    int length = snprintf(made.path, sizeof made.path, "%s/quoit-perf-XXXXXX", where && where[0] ? where : "/tmp");
    errno = ENAMETOOLONG;
    bool is_made = (size_t)length < sizeof made.path && start_keeper(folder, &made);
    if (!is_made)
        perror("quoit perf: cannot make a temporary folder");
    snprintf(folder->path, sizeof folder->path, "%s", is_made ? made.path : "");
    return is_made;
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
