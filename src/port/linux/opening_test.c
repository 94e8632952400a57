/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: the driver of real bridges, without one: what is written lands where it was sent, a doorbell wakes who waits for
 * it, copies end in their order with their status. Method: a double of /dev/ntbN, to the letter of quoit_ntb.h: a file
 * in memory that has the windows and the state where the device has them, and the system calls for it, of this program.
 * What a kernel and a chip make of it is tested in virtual machines (tests/vm). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/prng.h"
#include "env/park.h"
#include "port/driver.h"
#include "quoit_ntb.h"

#define WINDOW_BYTES ((size_t)1 << 20)
#define MEMORY_BYTES ((size_t)1 << 16)
#define PAGE_BYTES   ((size_t)4096)
#define WRITE_MOST   200000u
#define WAKE_NS      60000000000u

static struct {
    int file; /* the device; openings of it have descriptors of their own */
    dev_t device;
    ino_t inode;
    bool has_dma;
    char *windows[QUOIT_WINDOW_COUNT];
    struct quoit_ntb_state *state;
    struct quoit_ntb_eventfd eventfd; /* the last one */
    uint32_t eventfd_count;
    const char *pinned;
    int copy_error;      /* of the next copies; 0: they are taken */
    int end_status;      /* and how they end */
    uint32_t taken, end; /* copies so far, and those that have ended and were reported */
    bool has_ended;
    struct quoit_ntb_copy copies[QUOIT_NTB_DMA_DEPTH];
} ntb;

static bool is_device(int fd)
{
    struct stat file;
    return fstat(fd, &file) == 0 && file.st_dev == ntb.device && file.st_ino == ntb.inode;
}

static int refuse(int error)
{
    errno = error;
    return -1;
}

static int take_copy(const struct quoit_ntb_copy *copy)
{
    if (ntb.copy_error != 0)
        return refuse(ntb.copy_error);
    ntb.copies[ntb.taken++ % QUOIT_NTB_DMA_DEPTH] = *copy;
    if (ntb.end_status == 0)
        memcpy(ntb.windows[copy->window] + copy->offset, ntb.pinned + copy->source, copy->bytes);
    return 0;
}

static void describe_chip(struct quoit_ntb_info *info)
{
    *info = (struct quoit_ntb_info){.version = QUOIT_NTB_VERSION,
                                    .inbound_count = QUOIT_WINDOW_COUNT,
                                    .outbound_count = QUOIT_WINDOW_COUNT,
                                    .scratchpad_count = QUOIT_SCRATCHPAD_COUNT,
                                    .has_dma = ntb.has_dma,
                                    .doorbell_bits = 0xffff,
                                    .driver = "double"};
    for (uint32_t i = 0; i < QUOIT_WINDOW_COUNT; i++)
        info->windows[i] = (struct quoit_ntb_window){PAGE_BYTES, PAGE_BYTES, WINDOW_BYTES, WINDOW_BYTES};
}

/* Those of this program come before those of libc. A call that succeeds may leave any errno. */
int ioctl(int fd, unsigned long command, ...);
int ioctl(int fd, unsigned long command, ...)
{
    va_list list;
    va_start(list, command);
    void *argument = va_arg(list, void *);
    va_end(list);
    if (!is_device(fd))
        return (int)syscall(SYS_ioctl, fd, command, argument);
    errno = EAGAIN;
    switch ((uint32_t)command) {
    case QUOIT_NTB_INFO:
        describe_chip(argument);
        return 0;
    case QUOIT_NTB_JOIN:
    case QUOIT_NTB_LEASE:
        return 0;
    case QUOIT_NTB_MEMORY:
        ntb.pinned = (const char *)(uintptr_t)((const struct quoit_ntb_memory *)argument)->address;
        return open("/dev/null", O_RDONLY | O_CLOEXEC);
    case QUOIT_NTB_EVENTFD:
        ntb.eventfd = *(const struct quoit_ntb_eventfd *)argument;
        ntb.eventfd_count++;
        return 0;
    case QUOIT_NTB_COPY:
        return take_copy(argument);
    default:
        return refuse(ENOTTY);
    }
}

/* The ends of copies, in the order in which they were taken. */
ssize_t read(int fd, void *buffer, size_t bytes)
{
    struct quoit_ntb_done *done = buffer;
    size_t count = 0;
    if (!is_device(fd))
        return syscall(SYS_read, fd, buffer, bytes);
    for (; ntb.has_ended && ntb.end < ntb.taken && count < bytes / sizeof *done; ntb.end++)
        done[count++] = (struct quoit_ntb_done){.cookie = ntb.copies[ntb.end % QUOIT_NTB_DMA_DEPTH].cookie,
                                                .status = ntb.end_status};
    return (ssize_t)(count * sizeof *done);
}

static void *map_device(uint64_t offset, size_t bytes)
{
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ntb.file, (off_t)offset);
    assert_true(base != MAP_FAILED);
    return base;
}

struct rig {
    char *memory;
    struct quoit_port *port;
};

static void open_port(struct rig *rig, bool has_dma)
{
    struct stat file;
    memset(&ntb, 0, sizeof ntb);
    ntb.has_dma = has_dma;
    ntb.file = memfd_create("ntb", MFD_CLOEXEC);
    assert_true(ntb.file >= 0);
    assert_int_equal(ftruncate(ntb.file, (off_t)(QUOIT_NTB_STATE + PAGE_BYTES)), 0);
    assert_int_equal(fstat(ntb.file, &file), 0);
    ntb.device = file.st_dev;
    ntb.inode = file.st_ino;
    for (uint32_t i = 0; i < QUOIT_WINDOW_COUNT; i++)
        ntb.windows[i] = map_device(QUOIT_NTB_OUTBOUND(i), WINDOW_BYTES);
    ntb.state = map_device(QUOIT_NTB_STATE, PAGE_BYTES);
    ntb.state->link = 7 << 1 | 1;
    rig->memory = aligned_alloc(PAGE_BYTES, MEMORY_BYTES);
    assert_non_null(rig->memory);
    memset(rig->memory, 0, MEMORY_BYTES);
    const struct quoit_port_driver *driver = quoit_port_driver_find("linux");
    const struct quoit_port_site site = {.link_fd = ntb.file};
    struct quoit_port_endpoint endpoint;
    assert_int_equal(quoit_port_driver_describe(driver, &site, &endpoint), QUOIT_OK);
    const struct quoit_port_config config = {
        .driver = driver, .memory = {rig->memory, MEMORY_BYTES}, .endpoint = &endpoint};
    assert_int_equal(quoit_port_open(&config, &rig->port), QUOIT_OK);
}

static void close_port(struct rig *rig)
{
    quoit_port_close(rig->port);
    for (uint32_t i = 0; i < QUOIT_WINDOW_COUNT; i++)
        munmap(ntb.windows[i], WINDOW_BYTES);
    munmap(ntb.state, PAGE_BYTES);
    close(ntb.file);
    free(rig->memory);
}

/* Against a model of each window as a whole. */
static void test_writes_land_where_they_are_sent(void **state)
{
    struct rig rig;
    struct quoit_prng chance = {.state = 30};
    char *source = malloc(WRITE_MOST), *read_back = malloc(WRITE_MOST),
         *model = calloc(QUOIT_WINDOW_COUNT, WINDOW_BYTES);
    (void)state;
    assert_true(source && read_back && model);
    open_port(&rig, false);
    for (uint32_t turn = 0; turn < 40; turn++) {
        enum quoit_window window = (enum quoit_window)(turn % QUOIT_WINDOW_COUNT);
        size_t bytes = 1 + quoit_prng_choose(&chance, turn % 4 ? 300 : WRITE_MOST);
        uint64_t offset = quoit_prng_choose(&chance, WINDOW_BYTES - bytes), word = turn * UINT64_C(0x0123456789abcdef);
        for (size_t i = 0; i < bytes; i++)
            source[i] = (char)(turn * 37 + i * 11 + i / 256);
        char *there = model + window * WINDOW_BYTES;
        memcpy(there + offset, source, bytes);
        assert_int_equal(quoit_port_write(rig.port, window, offset, source, bytes), QUOIT_OK);
        assert_int_equal(quoit_port_read(rig.port, window, offset, read_back, bytes), QUOIT_OK);
        assert_memory_equal(read_back, source, bytes);
        memcpy(there + offset / 8 * 8, &word, sizeof word);
        assert_int_equal(quoit_port_write64(rig.port, window, offset / 8 * 8, word), QUOIT_OK);
        assert_memory_equal(ntb.windows[window], there, WINDOW_BYTES);
    }
    ntb.state->link = 7 << 1; /* down */
    assert_int_equal(quoit_port_write(rig.port, QUOIT_WINDOW_MEMORY, 0, source, 8), QUOIT_LINK_DOWN);
    assert_int_equal(quoit_port_write64(rig.port, QUOIT_WINDOW_MEMORY, 0, 1), QUOIT_LINK_DOWN);
    assert_int_equal(quoit_port_read(rig.port, QUOIT_WINDOW_MEMORY, 0, read_back, 8), QUOIT_LINK_DOWN);
    assert_memory_equal(ntb.windows[QUOIT_WINDOW_MEMORY], model + QUOIT_WINDOW_MEMORY * WINDOW_BYTES, WINDOW_BYTES);
    close_port(&rig);
    free(source);
    free(read_back);
    free(model);
}

/* What fires is waited for by the parks of its vector; the kernel is asked once for each. */
static void test_a_doorbell_wakes(void **state)
{
    struct rig rig;
    const uint32_t bits[] = {3, QUOIT_VECTOR_LINK, 9};
    int fds[3];
    (void)state;
    open_port(&rig, false);
    for (uint32_t i = 0; i < 3; i++) {
        const struct quoit_port_vector vector = {.park_offset = PAGE_BYTES * (i + 1), .park_count = 1};
        assert_int_equal(quoit_port_set_vector(rig.port, bits[i], &vector), QUOIT_OK);
        assert_int_equal(quoit_port_set_vector(rig.port, bits[i], &vector), QUOIT_OK);
        assert_int_equal(ntb.eventfd_count, i + 1);
        assert_int_equal(ntb.eventfd.bits, bits[i] == QUOIT_VECTOR_LINK ? 0 : UINT64_C(1) << bits[i]);
        assert_int_equal(ntb.eventfd.on_link, bits[i] == QUOIT_VECTOR_LINK);
        assert_int_equal(ntb.eventfd.on_dma, 0);
        fds[i] = ntb.eventfd.fd;
    }
    for (uint32_t turn = 0; turn < 9; turn++) {
        struct quoit_park *park = (struct quoit_park *)(void *)(rig.memory + PAGE_BYTES * (turn % 3 + 1));
        uint32_t key = quoit_park_prepare(park);
        assert_int_equal(write(fds[turn % 3], &(uint64_t){1}, sizeof(uint64_t)), sizeof(uint64_t));
        quoit_park_sleep(park, key, WAKE_NS);
        assert_true(quoit_park_was_woken(park, key));
    }
    close_port(&rig);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(fcntl(fds[i], F_GETFD), -1);
}

static enum quoit_status submit(struct rig *rig, uint32_t number)
{
    return quoit_port_dma_submit(rig->port, 0, QUOIT_WINDOW_MEMORY, 1000 * number, rig->memory + 100 * number, 99,
                                 50 + number);
}

static void check_ends(struct rig *rig, uint32_t first, uint32_t count, enum quoit_status status)
{
    struct quoit_dma_done done[4];
    assert_int_equal(quoit_port_dma_poll(rig->port, 0, done, 4), 0);
    ntb.has_ended = true;
    assert_int_equal(quoit_port_dma_poll(rig->port, 0, done, 4), count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(done[i].cookie, 50 + first + i);
        assert_int_equal(done[i].status, status);
    }
    assert_int_equal(quoit_port_dma_poll(rig->port, 0, done, 4), 0);
    ntb.has_ended = false;
}

static void test_copies_end(void **state)
{
    struct rig rig;
    struct quoit_port_limits limits;
    static const struct {
        int error;
        enum quoit_status status;
    } refusals[] = {
        {EAGAIN, QUOIT_FULL}, {EOPNOTSUPP, QUOIT_UNSUPPORTED}, {EINVAL, QUOIT_INVALID}, {ENODEV, QUOIT_GONE}};
    char *model = calloc(1, WINDOW_BYTES);
    (void)state;
    open_port(&rig, true);
    quoit_port_limits(rig.port, &limits);
    assert_int_equal(limits.dma_channel_count, 1);
    for (size_t i = 0; i < MEMORY_BYTES; i++)
        rig.memory[i] = (char)(i * 7 + i / 256);
    for (uint32_t number = 0; number < 3; number++) {
        memcpy(model + 1000 * number, rig.memory + 100 * number, 99);
        assert_int_equal(submit(&rig, number), QUOIT_OK);
    }
    check_ends(&rig, 0, 3, QUOIT_OK);
    assert_memory_equal(ntb.windows[QUOIT_WINDOW_MEMORY], model, WINDOW_BYTES);
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        ntb.copy_error = refusals[i].error;
        assert_int_equal(submit(&rig, 5), refusals[i].status);
    }
    ntb.copy_error = 0;
    ntb.end_status = -ENOLINK;
    assert_int_equal(submit(&rig, 6), QUOIT_OK);
    check_ends(&rig, 6, 1, QUOIT_LINK_DOWN);
    ntb.end_status = -EIO;
    assert_int_equal(submit(&rig, 7), QUOIT_OK);
    check_ends(&rig, 7, 1, QUOIT_SYSTEM);
    assert_memory_equal(ntb.windows[QUOIT_WINDOW_MEMORY], model, WINDOW_BYTES);
    close_port(&rig);
    free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_writes_land_where_they_are_sent),
        cmocka_unit_test(test_a_doorbell_wakes),
        cmocka_unit_test(test_copies_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
