/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: a mark that another writes while a window is read is one of its values, wherever in the range it stands. Method:
 * the processor traps after each instruction of the reader, and the handler writes all marks: both halves of a mark are
 * equal, and differ from those before the instruction. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <ucontext.h>

#include "port/emulated/opening.h"

#define MARKS 5u

static struct {
    _Atomic uint64_t marks[MARKS];
    uint64_t value;
    bool is_on;
} stepping;

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) /* which calls handlers later */
#define HAS_STEPS true

static void after_step(int number, siginfo_t *info, void *context)
{
    greg_t *flags = &((ucontext_t *)context)->uc_mcontext.gregs[17 /* REG_EFL */];
    (void)number, (void)info;
    stepping.value += UINT64_C(0x100000001);
    for (uint32_t i = 0; i < MARKS; i++)
        atomic_store(&stepping.marks[i], stepping.value);
    *flags = stepping.is_on ? *flags | 0x100 : *flags & ~0x100ll;
}
#else
#define HAS_STEPS false

static void after_step(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info, (void)context;
}
#endif

static void test_marks_are_read_whole(void **state)
{
    struct sigaction before, action = {.sa_sigaction = after_step, .sa_flags = SA_SIGINFO};
    uint64_t read[MARKS];
    (void)state;
    if (!HAS_STEPS)
        skip();
    assert_int_equal(sigaction(SIGTRAP, &action, &before), 0);
    for (uint32_t count = 1; count <= MARKS; count++) {
        uint64_t first = stepping.value;
        stepping.is_on = true;
        raise(SIGTRAP);
        quoit_emulated_words_in((char *)read, (const char *)stepping.marks, count * sizeof read[0]);
        stepping.is_on = false;
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(read[i] >> 32, (uint32_t)read[i]);
            assert_in_range(read[i], first + 1, stepping.value - 1); /* it was written meanwhile */
        }
    }
    sigaction(SIGTRAP, &before, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_marks_are_read_whole)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
