/* SPDX-License-Identifier: BSD-3-Clause */
/* For LD_PRELOAD: what profilers and checkers do to a process. It owns the lowest descriptors, several in a row, and a
 * thread, also after fork(), that looks whether they are still its own and ends the process by SIGABRT if they are not.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DESCRIPTORS 12
#define LOOK_NS     1000000

struct tool {
    int fds[DESCRIPTORS];
    struct stat facts;
};

static void *look(void *arg)
{
    struct tool *tool = arg;
    for (;;) {
        for (int i = 0; i < DESCRIPTORS; i++) {
            struct stat now;
            if (fstat(tool->fds[i], &now) != 0 || now.st_rdev != tool->facts.st_rdev) {
                dprintf(STDERR_FILENO, "tool: descriptor %d of process %d is not mine any more\n", tool->fds[i],
                        (int)getpid());
                abort();
            }
        }
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    }
    return NULL;
}

static struct tool the_tool;

static void start_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, look, &the_tool) == 0)
        pthread_detach(thread);
}

__attribute__((constructor)) static void begin(void)
{
    for (int i = 0; i < DESCRIPTORS; i++)
        if ((the_tool.fds[i] = open("/dev/zero", O_RDONLY)) < 0)
            return;
    if (fstat(the_tool.fds[0], &the_tool.facts) != 0 || pthread_atfork(NULL, NULL, start_thread) != 0)
        return;
    start_thread();
}
