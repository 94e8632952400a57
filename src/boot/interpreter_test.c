/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: the line in Python is that of the innermost function outside installed packages; an interpreter whose lock is
 * never free, that ends the process, or does not know the thread costs the line and no more. Method: this program
 * exports the functions of CPython that are used, on frames of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "boot/interpreter.h"
#include "env/clock.h"

#define SECOND_NS 1000000000u

/* A frame is its code, too; its file's name is a string. */
struct frame {
    const char *file;
    int line;
    struct frame *back;
};

static struct frame *innermost;
static enum { LOCK_FREE, LOCK_HELD, LOCK_FATAL } lock_state;
static int is_begun, is_known;
static struct frame none;

#define EXPORTED __attribute__((visibility("default")))
EXPORTED int Py_IsInitialized(void);
EXPORTED void *PyGILState_GetThisThreadState(void);
EXPORTED int PyGILState_Ensure(void);
EXPORTED void *PyEval_GetFrame(void);
EXPORTED int PyFrame_GetLineNumber(void *frame);
EXPORTED void *PyObject_GetAttrString(void *object, const char *name);
EXPORTED const char *PyUnicode_AsUTF8(void *string);

int Py_IsInitialized(void)
{
    return is_begun;
}

void *PyGILState_GetThisThreadState(void)
{
    return is_known ? &is_known : NULL;
}

int PyGILState_Ensure(void)
{
    if (lock_state == LOCK_FATAL)
        _exit(7);
    while (lock_state == LOCK_HELD)
        pause();
    return 0;
}

void *PyEval_GetFrame(void)
{
    return innermost;
}

int PyFrame_GetLineNumber(void *frame)
{
    return ((struct frame *)frame)->line;
}

void *PyObject_GetAttrString(void *object, const char *name)
{
    struct frame *frame = object;
    if (frame == &none)
        return NULL;
    if (strcmp(name, "f_back") == 0)
        return frame->back ? frame->back : &none;
    return strcmp(name, "f_code") == 0 ? frame : (void *)(uintptr_t)frame->file;
}

const char *PyUnicode_AsUTF8(void *string)
{
    return string;
}

static void expect(struct frame *frame, const char *expected)
{
    char text[QUOIT_SOURCE_LINE_BYTES];
    innermost = frame;
    lock_state = LOCK_FREE;
    is_begun = is_known = 1;
    assert_true(quoit_interpreter_line(quoit_clock_now_ns() + 60ull * SECOND_NS, text));
    assert_string_equal(text, expected);
}

static void test_lines(void **state)
{
    char long_name[400];
    struct frame program = {"/home/me/heat.py", 12, NULL}, inside = {"halo.py", 7, &program};
    struct frame package = {"/usr/lib/python3/dist-packages/wrap/core.py", 3, &inside};
    struct frame other = {"/x/site-packages/a.py", 4, &package}, alone = {"/x/site-packages/b.py", 5, NULL};
    (void)state;
    expect(&program, "heat.py:12");
    expect(&inside, "halo.py:7");
    expect(&package, "halo.py:7");
    expect(&other, "halo.py:7");
    expect(&alone, "b.py:5");
    struct frame own = {"/opt/quoit/lib/quoit/python/quoit/_job.py", 8, &program};
    expect(&own, "heat.py:12");
    struct frame library = {"/usr/lib/python3.11/functools.py", 9, &program}, frozen = {"<frozen runpy>", 88, &program};
    expect(&library, "heat.py:12");
    expect(&frozen, "heat.py:12");
    struct frame command = {"<string>", 1, &frozen};
    expect(&command, "<string>:1");
    struct frame in_site = {"/v/lib/python3.12/site-packages/quoit/_job.py", 5, &program};
    expect(&in_site, "heat.py:12");
    memset(long_name, 'n', sizeof long_name);
    long_name[sizeof long_name - 1] = '\0';
    struct frame wide = {long_name, 9, NULL};
    innermost = &wide;
    char text[QUOIT_SOURCE_LINE_BYTES];
    assert_true(quoit_interpreter_line(quoit_clock_now_ns() + 60ull * SECOND_NS, text));
    assert_string_equal(text + strlen(text) - 2, ":9");
}

static void expect_none(uint64_t limit_ns)
{
    char text[QUOIT_SOURCE_LINE_BYTES];
    assert_false(quoit_interpreter_line(quoit_clock_now_ns() + limit_ns, text));
}

static void test_no_line(void **state)
{
    struct frame program = {"heat.py", 12, NULL};
    (void)state;
    expect(&program, "heat.py:12");
    lock_state = LOCK_HELD;
    expect_none(SECOND_NS / 10);
    lock_state = LOCK_FATAL;
    expect_none(60ull * SECOND_NS);
    lock_state = LOCK_FREE;
    innermost = NULL; /* the thread is in no function of Python */
    expect_none(60ull * SECOND_NS);
    struct frame own = {"/opt/quoit/lib/quoit/python/quoit/_job.py", 8, NULL}; /* at the exit of the interpreter */
    innermost = &own;
    expect_none(60ull * SECOND_NS);
    innermost = &program;
    is_known = 0;
    expect_none(60ull * SECOND_NS);
    is_known = 1;
    is_begun = 0;
    expect_none(60ull * SECOND_NS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lines), cmocka_unit_test(test_no_line)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
