/* SPDX-License-Identifier: BSD-3-Clause */
#include "jobs.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MEMORY_NAME  "/memfd:quoit-host"
#define SUMMARY_NAME "/memfd:" QUOIT_SUMMARY_NAME
#define ANSWER_MS    3000 /* oshrun answers within a second, when it runs */

/* Maps the beginning of one memory. NULL: it does not belong to a job. */
static void *map_front(int fd, size_t bytes)
{
    struct stat facts;
    if (fstat(fd, &facts) != 0 || (uint64_t)facts.st_size < bytes)
        return NULL;
    void *front = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    return front == MAP_FAILED ? NULL : front;
}

/* Of text that another process wrote, and which will be printed on a terminal. */
static void copy_text(char *to, const char *from, size_t bytes)
{
    size_t i = 0;
    for (; i + 1 < bytes && from[i]; i++)
        to[i] = from[i] >= ' ' && from[i] <= '~' ? from[i] : '?';
    to[i] = '\0';
}

/* Copies the descriptor, so that it cannot change between check and use. */
static bool read_descriptor(int fd, size_t at, struct quoit_job_descriptor *descriptor_out)
{
    const char *front = map_front(fd, at + sizeof *descriptor_out);
    if (!front)
        return false;
    const struct quoit_job_descriptor *descriptor = (const void *)(front + at);
    bool is_ours = __atomic_load_n(&descriptor->magic, __ATOMIC_ACQUIRE) == QUOIT_JOB_DESCRIPTOR_MAGIC;
    *descriptor_out = *descriptor;
    munmap((void *)(uintptr_t)front, at + sizeof *descriptor_out);
    return is_ours && descriptor_out->job.host_count >= 1 && descriptor_out->job.host_count <= QUOIT_RING_HOSTS_MAX &&
           descriptor_out->host < descriptor_out->job.host_count;
}

/* The first memory determines what the job is. False: the other is of another job, or none that could be. */
static bool take_descriptor(struct job_view *view, const struct quoit_job_descriptor *descriptor)
{
    if (view->hosts)
        return memcmp(&view->config, &descriptor->job, sizeof descriptor->job) == 0;
    view->config = descriptor->job;
    view->start_ns = descriptor->start_ns;
    view->tag = descriptor->tag;
    view->is_part = descriptor->is_part;
    copy_text(view->program, descriptor->program, sizeof view->program);
    view->hosts = calloc(descriptor->job.host_count, sizeof *view->hosts);
    for (uint32_t i = 0; view->hosts && i < descriptor->job.host_count; i++) {
        if (quoit_layout_make(&descriptor->job, i, &view->hosts[i].layout) != QUOIT_OK) {
            free(view->hosts);
            view->hosts = NULL;
            return false;
        }
        snprintf(view->hosts[i].name, sizeof view->hosts[i].name, "host%u", i);
    }
    return view->hosts != NULL;
}

/* Adds one host's memory to the view. */
static void take_memory(struct job_view *view, int fd)
{
    struct quoit_job_descriptor descriptor;
    if (!read_descriptor(fd, offsetof(struct quoit_host_header, descriptor), &descriptor) ||
        !take_descriptor(view, &descriptor))
        return;
    struct job_host *host = &view->hosts[descriptor.host];
    if (host->front)
        return;
    host->front = map_front(fd, host->layout.channels);
    host->memory_fd = host->front ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1; /* -1: values read as 0 */
    copy_text(host->name, descriptor.host_name, sizeof host->name);
}

/* Of all hosts, on the machine where the job was started. */
static void take_summary(struct job_view *view, int fd)
{
    struct quoit_job_descriptor descriptor;
    struct stat facts;
    if (view->summary || fstat(fd, &facts) != 0 || !read_descriptor(fd, 0, &descriptor) ||
        !take_descriptor(view, &descriptor))
        return;
    view->owner = facts.st_uid;
    view->summary = map_front(fd, quoit_summary_bytes(&view->config));
    for (uint32_t i = 0; view->summary && i < view->config.host_count; i++)
        copy_text(view->hosts[i].name, quoit_summary_host(&view->config, view->summary, i)->name,
                  sizeof view->hosts[i].name);
}

static void take_descriptors(struct job_view *view, const char *folder)
{
    char target[64];
    struct dirent *entry;
    DIR *descriptors = opendir(folder);
    while (descriptors && (entry = readdir(descriptors))) {
        ssize_t length = readlinkat(dirfd(descriptors), entry->d_name, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        bool is_summary = strncmp(target, SUMMARY_NAME, strlen(SUMMARY_NAME)) == 0;
        if (!is_summary && strncmp(target, MEMORY_NAME, strlen(MEMORY_NAME)) != 0)
            continue;
        int fd = openat(dirfd(descriptors), entry->d_name, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            continue;
        (is_summary ? take_summary : take_memory)(view, fd);
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

/* All that there is to see of the job has been found. */
static bool is_whole(const struct job_view *view)
{
    uint32_t count = 0;
    if (view->summary || !view->hosts)
        return view->hosts != NULL;
    for (uint32_t i = 0; i < view->config.host_count; i++)
        count += view->hosts[i].front != NULL;
    return count == (view->is_part ? 1 : view->config.host_count);
}

bool job_open(struct job_view *view, pid_t pid)
{
    char folder[40];
    *view = (struct job_view){.pid = pid, .pid_fd = -1, .ask_fd = -1};
    if (!is_ours(pid, "oshrun"))
        return false;
    view->pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
    snprintf(folder, sizeof folder, "/proc/%d/fd", find_runner(pid));
    take_descriptors(view, folder);
    bool is_open = view->pid_fd >= 0 && is_whole(view);
    if (!is_open)
        job_close(view);
    return is_open;
}

/* Whether oshrun ends within some milliseconds. */
static bool ends_within(const struct job_view *view, int ms)
{
    struct pollfd ended = {.fd = view->pid_fd, .events = POLLIN};
    return poll(&ended, 1, ms) > 0;
}

/* The connection is of no more use: an answer could come late. */
static enum job_answer give_up(struct job_view *view, int wait_ms)
{
    if (view->ask_fd >= 0)
        close(view->ask_fd);
    view->ask_fd = -1;
    return ends_within(view, wait_ms) ? JOB_ENDED : JOB_SILENT;
}

enum job_answer job_ask(struct job_view *view, uint64_t *round_out)
{
    const uint64_t question = QUOIT_SUMMARY_ASK;
    char name[QUOIT_ABSTRACT_NAME_BYTES];
    memcpy(name, view->summary->socket, sizeof name);
    if (view->ask_fd < 0 && quoit_abstract_connect(name, view->owner, &view->ask_fd) != QUOIT_OK) {
        view->ask_fd = -1;
        return give_up(view, ANSWER_MS); /* the job is to end, and it is told so */
    }
    if (send(view->ask_fd, &question, sizeof question, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)sizeof question)
        return give_up(view, ANSWER_MS);
    struct pollfd answer = {.fd = view->ask_fd, .events = POLLIN};
    if (poll(&answer, 1, ANSWER_MS) <= 0)
        return give_up(view, 0);
    if (recv(view->ask_fd, round_out, sizeof *round_out, MSG_DONTWAIT) != (ssize_t)sizeof *round_out)
        return give_up(view, ANSWER_MS);
    return JOB_ANSWERED;
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
    if (view->summary)
        munmap(view->summary, quoit_summary_bytes(&view->config));
    if (view->ask_fd >= 0)
        close(view->ask_fd);
    if (view->pid_fd >= 0)
        close(view->pid_fd);
    *view = (struct job_view){.pid_fd = -1, .ask_fd = -1};
}

static int compare_pids(const void *a, const void *b)
{
    const struct job_view *x = a, *y = b;
    return x->pid < y->pid ? -1 : x->pid > y->pid;
}

/* Agents may run beside the oshrun that started them. */
static uint32_t drop_parts(struct job_view *views, uint32_t count)
{
    uint32_t kept_count = 0;
    for (uint32_t i = 0; i < count; i++) { /* wholes stay, so those before i are among the first kept_count */
        bool is_known = false;
        for (uint32_t other = 0; other < count && views[i].is_part; other++)
            if (other < kept_count || other > i)
                is_known |= views[other].summary && views[other].tag == views[i].tag;
        if (is_known)
            job_close(&views[i]);
        else
            views[kept_count++] = views[i];
    }
    return kept_count;
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
    count = drop_parts(views, count);
    if (count)
        qsort(views, count, sizeof *views, compare_pids);
    *views_out = views;
    return count;
}
