/* SPDX-License-Identifier: BSD-3-Clause */
#include "env/limits.h"
#include "env/text.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define PATH_BYTES 512
#define LINE_BYTES 512

/* A control group of this process: where its hierarchy is mounted, and its path there. */
struct group {
    char mount[64];
    char path[PATH_BYTES - 128]; /* "/a/b"; shortened while walking up, "" at the root */
};

/* The first value in a file that matches `format`; UINT64_MAX if there is none, or the value is a word such as "max".
 */
static uint64_t read_number(const char *name, const char *format)
{
    struct quoit_text text;
    char line[LINE_BYTES];
    unsigned long long number;
    uint64_t value = UINT64_MAX;
    quoit_text_open(&text, name);
    while (value == UINT64_MAX && quoit_text_line(&text, line, sizeof line))
        if (sscanf(line, format, &number) == 1)
            value = number;
    quoit_text_close(&text);
    return value;
}

static uint64_t read_group(const struct group *group, const char *what, const char *format)
{
    char name[PATH_BYTES];
    snprintf(name, sizeof name, "%s%s/%s", group->mount, group->path, what);
    return read_number(name, format);
}

/* False at the root. In a container the path may be the host's, with only the root visible. */
static bool go_up(struct group *group)
{
    char *slash = strrchr(group->path, '/');
    if (!slash)
        return false;
    *slash = '\0';
    return true;
}

static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);
    while (strncmp(list, word, length) != 0 || (list[length] != ',' && list[length] != '\0')) {
        list = strchr(list, ',');
        if (!list++)
            return false;
    }
    return true;
}

/* A line of /proc/self/cgroup: "4:memory:/a/b", or "0::/a/b" of version 2. */
static bool find_group(const char *controller, struct group *group_out)
{
    struct quoit_text text;
    char line[LINE_BYTES];
    bool is_found = false;
    quoit_text_open(&text, "/proc/self/cgroup");
    while (!is_found && quoit_text_line(&text, line, sizeof line)) {
        char *name = strchr(line, ':'), *path = name ? strchr(name + 1, ':') : NULL;
        if (!path || strlen(path + 1) >= sizeof group_out->path)
            continue;
        *path = '\0';
        is_found = controller ? has_word(name + 1, controller) : name[1] == '\0';
        snprintf(group_out->path, sizeof group_out->path, "%s", path + 1);
    }
    quoit_text_close(&text);
    snprintf(group_out->mount, sizeof group_out->mount, "/sys/fs/cgroup%s%s", controller ? "/" : "",
             controller ? controller : "");
    if (strcmp(group_out->path, "/") == 0)
        group_out->path[0] = '\0';
    return is_found;
}

/* File names of one cgroup version. */
struct memory_names {
    const char *controller, *most, *used, *cached[2];
};
static const struct memory_names memory_names[] = {
    {NULL, "memory.max", "memory.current", {"inactive_file %llu", "active_file %llu"}},
    {"memory",
     "memory.limit_in_bytes",
     "memory.usage_in_bytes",
     {"total_inactive_file %llu", "total_active_file %llu"}},
};

/* The memory limit of one level or, with is_free, the part of it not in use; page cache counts as free. */
static uint64_t memory_of_level(const struct group *group, const struct memory_names *names, bool is_free)
{
    uint64_t most = read_group(group, names->most, "%llu");
    if (!is_free || most == UINT64_MAX)
        return most;
    uint64_t used = read_group(group, names->used, "%llu");
    if (used == UINT64_MAX)
        return most;
    for (int i = 0; i < 2; i++) {
        uint64_t cached = read_group(group, "memory.stat", names->cached[i]);
        used -= cached < used ? cached : 0;
    }
    return most - (used < most ? used : most);
}

static uint64_t memory_of_groups(bool is_free)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < sizeof memory_names / sizeof memory_names[0]; i++) {
        struct group group;
        if (!find_group(memory_names[i].controller, &group))
            continue;
        do {
            uint64_t bytes = memory_of_level(&group, &memory_names[i], is_free);
            least = bytes < least ? bytes : least;
        } while (go_up(&group));
    }
    return least;
}

/* Bytes in a line of /proc/meminfo. */
static uint64_t bytes_of_machine(const char *format)
{
    uint64_t kib = read_number("/proc/meminfo", format);
    return kib == UINT64_MAX ? UINT64_MAX : kib << 10;
}

uint64_t quoit_limits_memory_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    uint64_t machine =
        pages > 0 ? (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) : bytes_of_machine("MemTotal: %llu kB");
    uint64_t groups = memory_of_groups(false);
    return groups < machine ? groups : machine;
}

uint64_t quoit_limits_free_bytes(void)
{
    uint64_t machine = bytes_of_machine("MemAvailable: %llu kB"), groups = memory_of_groups(true);
    return groups < machine ? groups : machine;
}

static uint64_t resource_limit(__rlimit_resource_t resource)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    return limit.rlim_cur;
}

uint64_t quoit_limits_address_bytes(void)
{
    uint64_t most = resource_limit(RLIMIT_AS);
    if (most == UINT64_MAX)
        return most;
    uint64_t pages = read_number("/proc/self/statm", "%llu");
    uint64_t used = pages == UINT64_MAX ? 0 : pages * (uint64_t)sysconf(_SC_PAGESIZE);
    return most - (used < most ? used : most);
}

uint64_t quoit_limits_file_bytes(void)
{
    return resource_limit(RLIMIT_FSIZE);
}

/* Whole processors that a level's CPU quota keeps busy; a fraction counts as 1. */
static uint64_t cores_of_level(const struct group *group, bool is_second)
{
    uint64_t quota = read_group(group, is_second ? "cpu.max" : "cpu.cfs_quota_us", "%llu");
    uint64_t period =
        is_second ? read_group(group, "cpu.max", "%*s %llu") : read_group(group, "cpu.cfs_period_us", "%llu");
    if (quota >= UINT64_MAX / 2 || period == UINT64_MAX || period == 0) /* -1 is read as a large number */
        return UINT64_MAX;
    return quota < period ? 1 : quota / period;
}

uint32_t quoit_limits_core_count(void)
{
    cpu_set_t set;
    uint64_t least = 1;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        least = (uint64_t)CPU_COUNT(&set);
    for (int is_second = 0; is_second < 2; is_second++) {
        struct group group;
        if (!find_group(is_second ? NULL : "cpu", &group))
            continue;
        do {
            uint64_t cores = cores_of_level(&group, is_second);
            least = cores < least ? cores : least;
        } while (go_up(&group));
    }
    return (uint32_t)least;
}

void quoit_limits_raise_files(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
}
