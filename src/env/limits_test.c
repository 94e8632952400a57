/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: limits of the process are reported, and without limits the machine's resources are. Method: a child process sets
 * each limit and compares what is reported. Control groups are files in a folder that becomes the child's root;
 * tests/scenario/resources.py tests those of the kernel. */
#include "env/limits.h"

#include <ftw.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define MIB (1ull << 20)

static bool is_true_in_a_child(bool (*check)(void))
{
    pid_t child = fork();
    int status;
    if (child == 0)
        _exit(check() ? 0 : 1);
    return waitpid(child, &status, 0) == child && status == 0;
}

static bool sees_one_processor(void)
{
    cpu_set_t set;
    int core = 0;
    sched_getaffinity(0, sizeof set, &set);
    while (!CPU_ISSET(core, &set))
        core++;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    return sched_setaffinity(0, sizeof set, &set) == 0 && quoit_limits_core_count() == 1;
}

static bool sees_file_size(void)
{
    return setrlimit(RLIMIT_FSIZE, &(struct rlimit){5 * MIB, 5 * MIB}) == 0 && quoit_limits_file_bytes() == 5 * MIB;
}

/* What is left is below the limit and shrinks with each mapping. */
static bool sees_address_space(void)
{
    const uint64_t most = 4096 * MIB, more = 64 * MIB;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return true; /* a sanitizer maps more than any such limit and cannot even open a file under it */
#endif
    if (setrlimit(RLIMIT_AS, &(struct rlimit){most, most}) != 0)
        return false;
    uint64_t before = quoit_limits_address_bytes();
    void *block = mmap(NULL, more, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    uint64_t after = quoit_limits_address_bytes();
    return block != MAP_FAILED && before < most && after <= before - more && after + 2 * more > before;
}

static void test_limits_are_seen(void **state)
{
    (void)state;
    assert_true(is_true_in_a_child(sees_one_processor));
    assert_true(is_true_in_a_child(sees_file_size));
    assert_true(is_true_in_a_child(sees_address_space));
}

static void test_machine_is_seen(void **state)
{
    (void)state;
    uint64_t pages = (uint64_t)sysconf(_SC_PHYS_PAGES), page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    assert_true(quoit_limits_memory_bytes() > 0 && quoit_limits_memory_bytes() <= pages * page_bytes);
    assert_true(quoit_limits_free_bytes() <= quoit_limits_memory_bytes());
    assert_true(quoit_limits_core_count() >= 1 && quoit_limits_core_count() <= (uint32_t)sysconf(_SC_NPROCESSORS_CONF));
}

/* Files of the kernel's, as a machine shows them, and what follows from them. */
struct machine {
    const char *name;
    struct {
        const char *path, *text;
    } files[8];
    uint64_t memory_bytes, free_bytes;
    uint32_t core_count; /* 0: as many as there are */
};

#define GROUPS "/sys/fs/cgroup"
static const struct machine machines[] = {
    {"version 2, a group",
     {{"/proc/self/cgroup", "0::/a/b\n"},
      {GROUPS "/a/b/memory.max", "100000\n"},
      {GROUPS "/a/b/memory.current", "60000\n"},
      {GROUPS "/a/b/memory.stat", "anon 7\ninactive_file 10000\nactive_file 2000\n"},
      {GROUPS "/a/memory.max", "max\n"},
      {GROUPS "/a/b/cpu.max", "50000 100000\n"}},
     100000,
     52000,
     1},
    {"version 2, the group above is smaller",
     {{"/proc/self/cgroup", "0::/a/b\n"},
      {GROUPS "/a/b/memory.max", "100000\n"},
      {GROUPS "/a/memory.max", "70000\n"},
      {GROUPS "/a/memory.current", "90000\n"}},
     70000,
     0,
     0},
    {"version 2, a container whose group is the root",
     {{"/proc/self/cgroup", "0::/\n"},
      {GROUPS "/memory.max", "80000\n"},
      {GROUPS "/memory.current", "30000\n"},
      {GROUPS "/cpu.max", "100000 100000\n"}},
     80000,
     50000,
     1},
    {"version 2, a container that sees the root alone of a path of the host",
     {{"/proc/self/cgroup", "0::/host/path\n"}, {GROUPS "/memory.max", "90000\n"}},
     90000,
     90000,
     0},
    {"version 1, a controller among others",
     {{"/proc/self/cgroup", "9:name=systemd:/x\n8:memory_not:/no\n4:other,memory:/a\n1:cpu,cpuacct:/c\n"},
      {GROUPS "/memory/a/memory.limit_in_bytes", "65536\n"},
      {GROUPS "/memory/a/memory.usage_in_bytes", "40000\n"},
      {GROUPS "/memory/a/memory.stat", "total_inactive_file 1000\ntotal_active_file 200\n"},
      {GROUPS "/memory/no/memory.limit_in_bytes", "1\n"},
      {GROUPS "/cpu/c/cpu.cfs_quota_us", "150000\n"},
      {GROUPS "/cpu/c/cpu.cfs_period_us", "100000\n"}},
     65536,
     26736,
     1},
    {"version 1, no quota",
     {{"/proc/self/cgroup", "4:memory:/\n1:cpu:/c\n"},
      {GROUPS "/memory/memory.limit_in_bytes", "65536\n"},
      {GROUPS "/cpu/c/cpu.cfs_quota_us", "-1\n"},
      {GROUPS "/cpu/c/cpu.cfs_period_us", "100000\n"}},
     65536,
     65536,
     0},
    {"no control group, little memory",
     {{"/proc/meminfo", "MemTotal: 999999999 kB\nMemFree: 1 kB\nMemAvailable: 64 kB\n"}},
     UINT64_MAX, /* the machine's */
     65536,
     0},
};

static void write_file(const char *root, const char *path, const char *text)
{
    char name[512];
    snprintf(name, sizeof name, "%s%s", root, path);
    for (char *slash = name + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        mkdir(name, 0755);
        *slash = '/';
    }
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *at)
{
    (void)status, (void)kind, (void)at;
    return remove(path);
}

enum outcome { AS_EXPECTED, NO_NEW_ROOT, WRONG_MEMORY, WRONG_FREE, WRONG_CORES };

static enum outcome compare_in_a_root(const char *root, const struct machine *machine)
{
    cpu_set_t set;
    uint64_t machine_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    if (sched_getaffinity(0, sizeof set, &set) != 0 ||
        (chroot(root) != 0 && (unshare(CLONE_NEWUSER) != 0 || chroot(root) != 0)))
        return NO_NEW_ROOT;
    if (quoit_limits_memory_bytes() != (machine->memory_bytes < machine_bytes ? machine->memory_bytes : machine_bytes))
        return WRONG_MEMORY;
    if (quoit_limits_free_bytes() != machine->free_bytes)
        return WRONG_FREE;
    uint32_t cores = (uint32_t)CPU_COUNT(&set);
    return quoit_limits_core_count() == (machine->core_count ? machine->core_count : cores) ? AS_EXPECTED : WRONG_CORES;
}

static void test_groups_are_seen(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++) {
        char root[] = "/tmp/quoit-limits-XXXXXX";
        int status;
        assert_non_null(mkdtemp(root));
        for (size_t j = 0; machines[i].files[j].path; j++)
            write_file(root, machines[i].files[j].path, machines[i].files[j].text);
        pid_t child = fork();
        if (child == 0)
            _exit((int)compare_in_a_root(root, &machines[i]));
        assert_int_equal(waitpid(child, &status, 0), child);
        nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) == NO_NEW_ROOT) {
            print_message("only root, or a user namespace, may have another root\n");
            skip();
        }
        if (WEXITSTATUS(status) != AS_EXPECTED)
            print_message("%s\n", machines[i].name);
        assert_int_equal(WEXITSTATUS(status), AS_EXPECTED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits_are_seen),
        cmocka_unit_test(test_machine_is_seen),
        cmocka_unit_test(test_groups_are_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
