/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: what a file of Quoit says of itself is read, and a file that is cut or changed anywhere only loses it. Method:
 * this program's own file; every length of its first bytes, and each byte of its headers changed. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "env/elf_file.h"

#define HEAD_BYTES 4096

static void test_own(void **state)
{
    struct quoit_elf elf;
    struct quoit_version version;
    char name[64];
    size_t at = 0, found = 0;
    (void)state;
    assert_true(quoit_elf_open(&elf, AT_FDCWD, "/proc/self/exe"));
    while (quoit_elf_next_name(&elf, DT_NEEDED, &at, name, sizeof name))
        found += strncmp(name, "libcmocka.so", 12) == 0;
    assert_int_equal(found, 1);
    assert_true(quoit_elf_version(&elf, &version));
    assert_memory_equal(&version, quoit_version(), sizeof version);
    quoit_elf_close(&elf);
}

static void test_none(void **state)
{
    static const char *const paths[] = {"/bin/sh", "/proc/self/stat", "/", "/dev/null", "/nowhere"};
    struct quoit_version version;
    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        assert_false(quoit_elf_version_of(paths[i], &version));
}

/* Reads all that can be read; the sanitizers and limits judge. */
static void read_all(int fd)
{
    char path[48], name[64];
    struct quoit_elf elf;
    struct quoit_version version;
    size_t at = 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (!quoit_elf_open(&elf, AT_FDCWD, path))
        return;
    while (quoit_elf_next_name(&elf, DT_NEEDED, &at, name, sizeof name))
        assert_true(strlen(name) < sizeof name);
    if (quoit_elf_version(&elf, &version))
        assert_true(quoit_version_is_valid(&version));
    quoit_elf_close(&elf);
}

static void test_damaged(void **state)
{
    unsigned char head[HEAD_BYTES], byte;
    int own = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), fd = memfd_create("damaged", MFD_CLOEXEC);
    (void)state;
    assert_true(own >= 0 && fd >= 0 && pread(own, head, sizeof head, 0) == HEAD_BYTES);
    for (size_t bytes = 1; bytes <= HEAD_BYTES; bytes++) { /* one byte longer each time */
        assert_int_equal(pwrite(fd, &head[bytes - 1], 1, (off_t)bytes - 1), 1);
        read_all(fd);
    }
    for (size_t i = 0; i < 1024; i++)
        for (unsigned change = 1; change < 256; change *= 16) {
            byte = (unsigned char)(head[i] ^ (change | 0x80));
            assert_int_equal(pwrite(fd, &byte, 1, (off_t)i), 1);
            read_all(fd);
            assert_int_equal(pwrite(fd, &head[i], 1, (off_t)i), 1);
        }
    close(own);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
