/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/apart.h"
#include "base/assert.h"
#include "env/libc.h"
#include "env/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STACK_BYTES (256u << 10)

struct start {
    void (*run)(void *arg);
    void *arg;
    int fds[QUOIT_APART_FDS_MAX + 1]; /* ascending */
    size_t fd_count;
    int is_shared;
    sem_t is_apart;
};

static int compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

bool quoit_apart_wait(int fd, int timeout_ms)
{
    struct pollfd comes = {.fd = fd, .events = POLLIN};
    struct timespec timeout = {.tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000L};
    return syscall(SYS_ppoll, &comes, 1, timeout_ms < 0 ? NULL : &timeout, NULL, 0) > 0;
}

ssize_t quoit_apart_receive(int fd, void *bytes_out, size_t byte_count)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    struct iovec part = {bytes_out, byte_count};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    return syscall(SYS_recvmsg, fd, &message, MSG_CMSG_CLOEXEC);
}

ssize_t quoit_apart_send(int fd, const void *bytes, size_t byte_count)
{
    return syscall(SYS_sendto, fd, bytes, byte_count, MSG_NOSIGNAL | MSG_DONTWAIT, NULL, 0);
}

void quoit_apart_close(int fd)
{
    (void)syscall(SYS_close, fd);
}

static int open_nothing(void)
{
    return (int)syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC);
}

/* Unshares the descriptor table and closes all but fds[]. Containers often refuse unshare(), by a filter of system
 * calls. */
static int move_apart(const struct start *start)
{
    int first = start->fds[start->fd_count - 1] + 1;
    if (syscall(SYS_close_range, first, ~0u, CLOSE_RANGE_UNSHARE) != 0) {
        if (unshare(CLONE_FILES) != 0)
            return 1;
        quoit_close_from(first);
    }
    for (int fd = 0; fd < first; fd++) {
        int is_kept = 0;
        for (size_t i = 0; i < start->fd_count; i++)
            is_kept |= start->fds[i] == fd;
        if (!is_kept)
            quoit_apart_close(fd);
    }
    for (int fd = open_nothing(); fd >= 0 && fd < STDERR_FILENO;) /* 0 and 1 are never ours */
        fd = open_nothing();
    return 0;
}

static void *thread_main(void *arg)
{
    struct start *start = arg;
    void (*run)(void *arg) = start->run;
    void *run_arg = start->arg;
    start->is_shared = move_apart(start);
    sem_post(&start->is_apart); /* from here on *start may be gone: it is on the caller's stack */
    run(run_arg);
    return NULL;
}

enum quoit_status quoit_apart_start(void (*run)(void *arg), void *arg, const int *fds, size_t count, int *is_shared_out)
{
    struct start start = {.run = run, .arg = arg, .fds = {STDERR_FILENO}, .fd_count = 1};
    quoit_assert(count <= QUOIT_APART_FDS_MAX);
    for (size_t i = 0; i < count; i++)
        if (fds[i] >= 0)
            start.fds[start.fd_count++] = fds[i];
    qsort(start.fds, start.fd_count, sizeof start.fds[0], compare);
    sem_init(&start.is_apart, 0, 0);
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t before;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    quoit_signals_block(&before);
    int error = pthread_create(&thread, &attributes, thread_main, &start);
    quoit_signals_restore(&before);
    pthread_attr_destroy(&attributes);
    while (!error && sem_wait(&start.is_apart) != 0 && errno == EINTR)
        ;
    sem_destroy(&start.is_apart);
    *is_shared_out = start.is_shared;
    errno = error;
    return error ? QUOIT_SYSTEM : QUOIT_OK;
}
