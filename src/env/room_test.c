/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: a room takes exactly the pages that it is asked for, and none where the machine lacks them. Method: mappings of
 * a memfd, whose blocks fstat counts; what the machine has free is read as the room reads it. */
#include "env/room.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "env/limits.h"
#include "env/map.h"

#define PAGE 4096u
#define MIB  ((uint64_t)1 << 20)

struct file {
    int fd;
    char *base;
    uint64_t bytes;
};

static struct file make_file(uint64_t bytes)
{
    struct file file = {.fd = memfd_create("room-test", 0), .bytes = bytes};
    assert_true(file.fd >= 0);
    assert_int_equal(ftruncate(file.fd, (off_t)bytes), 0);
    file.base = quoit_map_file(file.fd, bytes, PROT_READ | PROT_WRITE);
    assert_non_null(file.base);
    return file;
}

static uint64_t allocated(const struct file *file)
{
    struct stat stat;
    assert_int_equal(fstat(file->fd, &stat), 0);
    return (uint64_t)stat.st_blocks * 512;
}

static void end_file(struct file *file)
{
    munmap(file->base, file->bytes);
    close(file->fd);
}

/* Whether the kernel gives this file pages of 4 KiB, one at a time. */
static int is_plain(void)
{
    struct file file = make_file(4 * MIB);
    file.base[MIB] = 1;
    int is_so = allocated(&file) == PAGE;
    end_file(&file);
    return is_so;
}

static void exactly_the_pages_of_a_range(void **state)
{
    (void)state;
    if (!is_plain())
        skip();
    struct file file = make_file(64 * MIB);
    struct quoit_room room = {0};
    assert_int_equal(quoit_map_missing_bytes(file.base, file.bytes), file.bytes);
    assert_int_equal(quoit_room_take(&room, file.base + 2 * MIB - 1, 2, 1), 0);
    assert_int_equal(allocated(&file), 2 * PAGE);
    assert_int_equal(quoit_room_take(&room, file.base, 0, 1), 0);
    assert_int_equal(allocated(&file), 2 * PAGE);
    memset(file.base + 2 * MIB - PAGE, 5, 2 * PAGE);
    assert_int_equal(quoit_room_take(&room, file.base + MIB, 3 * MIB, 1), 0); /* has a whole huge page in it */
    assert_int_equal(allocated(&file), 3 * MIB);
    assert_int_equal(quoit_map_missing_bytes(file.base + MIB - 1, 3 * MIB + 2), 2 * PAGE);
    for (uint64_t at = MIB; at < 4 * MIB; at++)
        assert_int_equal(file.base[at], at >= 2 * MIB - PAGE && at < 2 * MIB + PAGE ? 5 : 0);
    end_file(&file);
}

static void not_more_than_the_machine_has(void **state)
{
    (void)state;
    uint64_t free_bytes = quoit_limits_free_bytes();
    if (free_bytes == UINT64_MAX)
        skip();
    struct file file = make_file(free_bytes + (uint64_t)1024 * MIB);
    struct quoit_room room = {0};
    assert_int_equal(quoit_room_take(&room, file.base, file.bytes, 1), ENOMEM);
    assert_int_equal(allocated(&file), 0);
    end_file(&file);
}

/* What is permitted without a further look is a part of what is free, and used up by what is taken. */
static void looks_are_repeated(void **state)
{
    (void)state;
    struct file file = make_file(8 * MIB);
    struct quoit_room room = {0};
    assert_int_equal(quoit_room_take(&room, file.base, PAGE, 1), 0);
    assert_true(room.permitted_bytes <= QUOIT_ROOM_LOOK_BYTES);
    room.permitted_bytes = 3 * PAGE;
    assert_int_equal(quoit_room_take(&room, file.base + MIB + 1, PAGE, 1), 0);
    assert_int_equal(room.permitted_bytes, PAGE);
    assert_int_equal(quoit_room_take(&room, file.base + 2 * MIB, PAGE, UINT32_MAX), 0);
    assert_int_equal(room.permitted_bytes, 0);
    assert_int_equal(quoit_room_take(&room, file.base + 3 * MIB, PAGE, UINT32_MAX), 0);
    assert_true(room.permitted_bytes < MIB);
    assert_int_equal(quoit_room_take(&room, file.base, 2 * PAGE, 1), 0);
    end_file(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exactly_the_pages_of_a_range),
        cmocka_unit_test(not_more_than_the_machine_has),
        cmocka_unit_test(looks_are_repeated),
    };
    return cmocka_run_group_tests_name("room", tests, NULL, NULL);
}
