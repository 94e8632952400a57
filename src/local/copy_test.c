/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: each copy method moves every byte and no other, and a ban on cma is detected. Method: source and destination at
 * several alignments with guard bytes around them, compared bytewise with a loop; the other process is a child that
 * shares the memory at another address; another child has a seccomp filter that refuses process_vm_*. The seed is
 * fixed. */
#include "local/copy.h"
#include "base/prng.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SEED          20260507u
#define SEGMENT_BYTES ((size_t)16 << 20)
#define EDGE_BYTES    128u
#define BASE_WORD     0x1234567887654321u /* at the end of the segment, for probing */

struct other {
    pid_t pid;
    char *here;
    char *there; /* the child's address of it, which differs from ours */
};

static struct other other;

/* The segment of a child that only waits. */
static int start_other(void **state)
{
    (void)state;
    int ends[2];
    int fd = memfd_create("other", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)SEGMENT_BYTES) != 0 || pipe(ends) != 0)
        return 1;
    other.here = mmap(NULL, SEGMENT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    other.pid = fork();
    if (other.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        char *there = mmap(NULL, SEGMENT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        munmap(other.here, SEGMENT_BYTES);
        quoit_copy_allow_cma();
        if (write(ends[1], &there, sizeof there) != (ssize_t)sizeof there)
            _exit(1);
        for (;;)
            pause();
    }
    if (read(ends[0], &other.there, sizeof other.there) != (ssize_t)sizeof other.there || other.here == other.there)
        return 1;
    close(ends[0]);
    close(ends[1]);
    close(fd);
    memcpy(other.here + SEGMENT_BYTES - sizeof(uint64_t), &(uint64_t){BASE_WORD}, sizeof(uint64_t));
    return 0;
}

static int stop_other(void **state)
{
    (void)state;
    kill(other.pid, SIGKILL);
    waitpid(other.pid, NULL, 0);
    munmap(other.here, SEGMENT_BYTES);
    return 0;
}

static struct quoit_copy_place place_at(size_t at)
{
    return (struct quoit_copy_place){
        .here = other.here + at, .there = (uintptr_t)other.there + at, .pid = (uint32_t)other.pid};
}

/* A place without the mapping that a method through the kernel must not need. */
static struct quoit_copy_place place_for(enum quoit_copy_method method, size_t at)
{
    struct quoit_copy_place place = place_at(at);
    if (method == QUOIT_COPY_CMA)
        place.here = NULL;
    return place;
}

static int probe(void)
{
    struct quoit_copy_place word = place_at(SEGMENT_BYTES - sizeof(uint64_t));
    return quoit_copy_probe_cma(&word, BASE_WORD);
}

static bool can(enum quoit_copy_method method)
{
    return quoit_copy_is_built(method) && (method != QUOIT_COPY_CMA || probe() == 0);
}

static void fill(char *bytes, size_t count, struct quoit_prng *prng)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (char)(quoit_prng_next(prng) >> 32);
}

/* Copies both ways between unaligned places and checks every byte of both sides and around them. */
static void check_copy(enum quoit_copy_method method, size_t bytes, size_t private_at, size_t shared_at,
                       struct quoit_prng *prng)
{
    static char mine[SEGMENT_BYTES], model[SEGMENT_BYTES];
    size_t span = bytes + 2 * EDGE_BYTES;
    fill(mine, span, prng);
    fill(other.here, span, prng);
    memcpy(model, other.here, span);
    for (size_t i = 0; i < bytes; i++)
        model[shared_at + i] = mine[private_at + i];
    struct quoit_copy_place place = place_for(method, shared_at);
    quoit_copy_put(method, &place, mine + private_at, bytes);
    if (memcmp(other.here, model, span) != 0)
        fail_msg("put by %s of %zu bytes from %zu to %zu", quoit_copy_method_name(method), bytes, private_at,
                 shared_at);

    fill(mine, span, prng);
    memcpy(model, mine, span);
    for (size_t i = 0; i < bytes; i++)
        model[private_at + i] = other.here[shared_at + i];
    quoit_copy_get(method, mine + private_at, &place, bytes);
    if (memcmp(mine, model, span) != 0)
        fail_msg("get by %s of %zu bytes from %zu to %zu", quoit_copy_method_name(method), bytes, shared_at,
                 private_at);
}

static void test_every_byte(void **state)
{
    (void)state;
    struct quoit_prng prng = {SEED};
    static const size_t large[] = {65536, 100003, 1u << 20, (3u << 20) + 17};
    for (enum quoit_copy_method method = 0; method < QUOIT_COPY_METHOD_COUNT; method++) {
        if (!can(method)) {
            print_message("%s: not here\n", quoit_copy_method_name(method));
            continue;
        }
        for (size_t bytes = 0; bytes <= 4096; bytes += bytes < 300 ? 1 : 61)
            for (int i = 0; i < 2; i++)
                check_copy(method, bytes, quoit_prng_choose(&prng, EDGE_BYTES), quoit_prng_choose(&prng, EDGE_BYTES),
                           &prng);
        for (size_t at = 0; at < 64; at++)
            check_copy(method, 257, 63 - at, at, &prng);
        for (size_t i = 0; i < sizeof large / sizeof large[0]; i++)
            check_copy(method, large[i], quoit_prng_choose(&prng, EDGE_BYTES), quoit_prng_choose(&prng, EDGE_BYTES),
                       &prng);
    }
}

/* A copy onto itself changes nothing. */
static void test_onto_itself(void **state)
{
    (void)state;
    struct quoit_prng prng = {SEED};
    char before[5000];
    fill(other.here, sizeof before, &prng);
    memcpy(before, other.here, sizeof before);
    for (enum quoit_copy_method method = 0; method < QUOIT_COPY_METHOD_COUNT; method++) {
        struct quoit_copy_place place = place_at(3);
        quoit_copy_put(method, &place, place.here, sizeof before - 3);
        assert_memory_equal(before, other.here, sizeof before);
    }
}

static void test_names(void **state)
{
    (void)state;
    for (enum quoit_copy_method method = 0; method < QUOIT_COPY_METHOD_COUNT; method++) {
        const char *name = quoit_copy_method_name(method);
        assert_int_equal(quoit_copy_method_find(name, strlen(name)), method);
        assert_int_equal(quoit_copy_method_find(name, strlen(name) - 1), QUOIT_COPY_METHOD_COUNT);
    }
    assert_int_equal(quoit_copy_method_find("auto", 4), QUOIT_COPY_METHOD_COUNT);
}

/* A wrong pid is detected before anything is written. */
static void test_somebody_else(void **state)
{
    (void)state;
    if (!can(QUOIT_COPY_CMA))
        skip();
    struct quoit_copy_place word = place_at(SEGMENT_BYTES - sizeof(uint64_t));
    assert_int_equal(quoit_copy_probe_cma(&word, BASE_WORD + 1), ESRCH);
    word.there = 8; /* nothing is mapped there */
    assert_int_equal(quoit_copy_probe_cma(&word, BASE_WORD), EFAULT);
}

/* Refuses process_vm_* with EPERM for the rest of this process. */
static int forbid_cma(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof rules / sizeof rules[0], .filter = rules};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* Under the filter probing returns EPERM, and a copy by cma uses the mapping instead. */
static void test_forbidden(void **state)
{
    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        static const char text[] = "all of it, by the mapping";
        struct quoit_copy_place place = place_at(77);
        if (forbid_cma() != 0)
            _exit(2);
        if (probe() != EPERM)
            _exit(3);
        quoit_copy_put(QUOIT_COPY_CMA, &place, text, sizeof text);
        char back[sizeof text];
        quoit_copy_get(QUOIT_COPY_CMA, back, &place, sizeof back);
        _exit(memcmp(other.here + 77, text, sizeof text) || memcmp(back, text, sizeof text) ? 4 : 0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_byte),    cmocka_unit_test(test_onto_itself), cmocka_unit_test(test_names),
        cmocka_unit_test(test_somebody_else), cmocka_unit_test(test_forbidden),
    };
    return cmocka_run_group_tests(tests, start_other, stop_other);
}
