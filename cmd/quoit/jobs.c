/* SPDX-License-Identifier: BSD-3-Clause */
#include "jobs.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MEMORY_NAME "/memfd:quoit-host"

/* Maps the beginning of one memory. NULL: it does not belong to a job. */
static void *map_front(int fd, size_t bytes)
{
    struct stat facts;
    if (fstat(fd, &facts) != 0 || (uint64_t)facts.st_size < bytes)
        return NULL;
    void *front = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    return front == MAP_FAILED ? NULL : front;
}

/* Copies the descriptor, so that it cannot change between check and use. */
static bool read_descriptor(int fd, struct quoit_job_descriptor *descriptor_out)
{
    const struct quoit_host_header *header = map_front(fd, sizeof *header);
    if (!header)
        return false;
    bool is_ours = __atomic_load_n(&header->descriptor.magic, __ATOMIC_ACQUIRE) == QUOIT_JOB_DESCRIPTOR_MAGIC;
    *descriptor_out = header->descriptor;
    munmap((void *)(uintptr_t)header, sizeof *header);
    descriptor_out->program[sizeof descriptor_out->program - 1] = '\0';
    return is_ours && descriptor_out->job.host_count >= 1 && descriptor_out->job.host_count <= QUOIT_RING_HOSTS_MAX &&
           descriptor_out->host < descriptor_out->job.host_count;
}

/* Adds one host's memory to the view; the first one determines the job config. */
static void take_memory(struct job_view *view, int fd)
{
    struct quoit_job_descriptor descriptor;
    if (!read_descriptor(fd, &descriptor))
        return;
    if (!view->hosts) {
        view->config = descriptor.job;
        view->start_ns = descriptor.start_ns;
        for (size_t i = 0; descriptor.program[i]; i++) /* it will be printed on a terminal */
            view->program[i] =
                descriptor.program[i] >= ' ' && descriptor.program[i] <= '~' ? descriptor.program[i] : '?';
        view->hosts = calloc(descriptor.job.host_count, sizeof *view->hosts);
    }
    if (!view->hosts || memcmp(&view->config, &descriptor.job, sizeof descriptor.job) != 0)
        return;
    struct job_host *host = &view->hosts[descriptor.host];
    if (!host->front && quoit_layout_make(&descriptor.job, descriptor.host, &host->layout) == QUOIT_OK)
        host->front = map_front(fd, host->layout.channels);
    else
        return;
    host->memory_fd = host->front ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1; /* -1: values read as 0 */
}

static void take_descriptors(struct job_view *view, const char *folder)
{
    char target[64];
    struct dirent *entry;
    DIR *descriptors = opendir(folder);
    while (descriptors && (entry = readdir(descriptors))) {
        ssize_t length = readlinkat(dirfd(descriptors), entry->d_name, target, sizeof target - 1);
        if (length < (ssize_t)strlen(MEMORY_NAME) || strncmp(target, MEMORY_NAME, strlen(MEMORY_NAME)) != 0)
            continue;
        int fd = openat(dirfd(descriptors), entry->d_name, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            continue;
        take_memory(view, fd);
        close(fd);
    }
    if (descriptors)
        closedir(descriptors);
}

/* Whether a process has that name and belongs to this user, or to any user if this one is root. */
static bool is_ours(pid_t pid, const char *wanted)
{
    char path[40], name[16] = "";
    struct stat facts;
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool is_it = fgets(name, sizeof name, file) != NULL;
    name[strcspn(name, "\n")] = '\0';
    is_it = is_it && strcmp(name, wanted) == 0 && fstat(fileno(file), &facts) == 0 &&
            (facts.st_uid == geteuid() || geteuid() == 0);
    fclose(file);
    return is_it;
}

/* A child of that name; 0: none */
static pid_t find_child(pid_t parent, const char *name)
{
    char path[64];
    int pid = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", parent, parent);
    FILE *file = fopen(path, "re");
    while (file && fscanf(file, "%d", &pid) == 1 && !is_ours(pid, name))
        pid = 0;
    if (file)
        fclose(file);
    return pid;
}

/* The process below oshrun that runs the job; see cmd/oshrun/guard.h. 0: none */
static pid_t find_runner(pid_t oshrun)
{
    return find_child(find_child(oshrun, "quoit-guard"), "quoit-job");
}

bool job_open(struct job_view *view, pid_t pid)
{
    char folder[40];
    *view = (struct job_view){.pid = pid, .pid_fd = -1};
    if (!is_ours(pid, "oshrun"))
        return false;
    view->pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
    snprintf(folder, sizeof folder, "/proc/%d/fd", find_runner(pid));
    take_descriptors(view, folder);
    bool is_whole = view->pid_fd >= 0 && view->hosts;
    for (uint32_t i = 0; is_whole && i < view->config.host_count; i++)
        is_whole = view->hosts[i].front != NULL;
    if (!is_whole)
        job_close(view);
    return is_whole;
}

/* Of a process of that name; 0: there is none. */
static pid_t parent_of(pid_t pid, const char *name)
{
    char path[40];
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = is_ours(pid, name) ? fopen(path, "re") : NULL; /* so the name in it has no parentheses */
    if (file && fscanf(file, "%*d (%*[^)]) %*c %d", &parent) != 1)
        parent = 0;
    if (file)
        fclose(file);
    return parent;
}

bool job_open_runner(struct job_view *view, pid_t runner)
{
    return job_open(view, parent_of(parent_of(runner, "quoit-job"), "quoit-guard"));
}

void job_close(struct job_view *view)
{
    for (uint32_t i = 0; view->hosts && i < view->config.host_count; i++)
        if (view->hosts[i].front) {
            munmap((void *)(uintptr_t)view->hosts[i].front, view->hosts[i].layout.channels);
            close(view->hosts[i].memory_fd);
        }
    free(view->hosts);
    if (view->pid_fd >= 0)
        close(view->pid_fd);
    *view = (struct job_view){.pid_fd = -1};
}

static int compare_pids(const void *a, const void *b)
{
    const struct job_view *x = a, *y = b;
    return x->pid < y->pid ? -1 : x->pid > y->pid;
}

uint32_t jobs_find(struct job_view **views_out)
{
    struct job_view *views = NULL;
    uint32_t count = 0;
    struct dirent *entry;
    DIR *processes = opendir("/proc");
    while (processes && (entry = readdir(processes))) {
        struct job_view view;
        pid_t pid = (pid_t)atoi(entry->d_name);
        if (pid <= 0 || !job_open(&view, pid))
            continue;
        struct job_view *more = realloc(views, (count + 1) * sizeof *views);
        if (!more) {
            job_close(&view);
            break;
        }
        views = more;
        views[count++] = view;
    }
    if (processes)
        closedir(processes);
    if (count)
        qsort(views, count, sizeof *views, compare_pids);
    *views_out = views;
    return count;
}
