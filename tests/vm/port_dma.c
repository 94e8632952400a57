// SPDX-License-Identifier: BSD-3-Clause
/* Aim: the copies that engines make through /dev/ntbN (kernel/copy.c) arrive byte for byte, each completes once, and
 * none arrives after the link or its process is gone. Method: the same program at both ends; in each round both fill
 * slots of the other's memory by copies of random places and lengths, repeat those that failed, and compare every byte
 * of what came, also between the copies. Before, processes are killed whose copies are under way; behind, the link is
 * lost with copies under way. With `late` the engine is slow (ntb_device --dma-late): then stores must be seen that
 * overtook a copy, and copies that the loss of the link has ended.
 *
 * Use: port_dma DEVICE a|b [late] [failing]
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

#include "base/prng.h"
#include "port_check.h"

#define BYTES       (1u << 20)
#define SLOTS       48u
#define SLOT_BYTES  20480u
#define SLOTS_AT    65536u
#define SOURCE_MORE 4096u /* behind the bytes of the source: words */
#define ROUNDS      8u
#define CHILDREN    10
#define RACES       20u
#define LATE_MS     300

enum word { READY, CHECKED, MARK, FLAG, DATA, SEEN, LOSS, PHASE }; /* of 8 bytes each, at the start of the window */

_Static_assert(SLOTS_AT + SLOTS * SLOT_BYTES == BYTES, "slots fill the window");

struct copy {
    uint64_t source, offset, bytes;
};

enum state { WAITING, UNDER_WAY, DONE };

struct end {
    bool is_a, is_late, is_failing;
    const char *device;
    int port, on_link, on_dma, memory, source;
    uint32_t epoch;
    volatile unsigned char *in;
    volatile uint64_t *in_word, *out_word;
    unsigned char *from, *theirs; /* own source; what the peer's holds */
    uint64_t *from_word;
    uint64_t copy_count, byte_count, failed_count;
};

static uint64_t mix(uint64_t x)
{
    return quoit_prng_next(&(struct quoit_prng){x});
}

/* Copy `slot` of a round; both ends know it. */
static struct copy copy_of(bool is_a, uint64_t round, uint64_t slot)
{
    uint64_t chance = mix(mix(round << 16 | slot << 1 | is_a));
    uint64_t bytes = 1 + chance % SLOT_BYTES, at = chance / SLOT_BYTES % (SLOT_BYTES - bytes + 1);
    return (struct copy){
        .source = mix(chance) % (BYTES - bytes), .offset = SLOTS_AT + slot * SLOT_BYTES + at, .bytes = bytes};
}

static void fill_source(unsigned char *to, bool is_a)
{
    for (size_t at = 0; at < BYTES; at += 8) {
        uint64_t word = mix(at << 1 | is_a);
        memcpy(to + at, &word, sizeof word);
    }
}

static unsigned char background(uint64_t round)
{
    return (unsigned char)(round * 37 + 11);
}

/* Copies */

static int submit(int port, int memory, const struct copy *copy, uint64_t cookie)
{
    struct quoit_ntb_copy call = {.memory_fd = memory,
                                  .window = 0,
                                  .source = copy->source,
                                  .offset = copy->offset,
                                  .bytes = copy->bytes,
                                  .cookie = cookie};
    return ioctl(port, QUOIT_NTB_COPY, &call) == 0 ? 0 : errno;
}

/* At least one completion; at most `most`. */
static size_t take_done(struct end *end, struct quoit_ntb_done *done, size_t most)
{
    for (double end_s = now_s() + PATIENCE_S;;) {
        struct pollfd wait = {.fd = end->on_dma, .events = POLLIN};
        uint64_t count;
        ssize_t bytes = read(end->port, done, most * sizeof *done);
        CHECK(bytes >= 0 && (size_t)bytes % sizeof *done == 0);
        if (bytes > 0)
            return (size_t)bytes / sizeof *done;
        CHECK(now_s() < end_s);
        if (poll(&wait, 1, 1000) > 0)
            CHECK(read(end->on_dma, &count, sizeof count) == sizeof count);
    }
}

/* Until all have arrived. Cookies are `first` and those behind it. */
static void copy_all(struct end *end, const struct copy *copies, uint32_t count, uint64_t first)
{
    enum state states[SLOTS] = {WAITING};
    struct quoit_ntb_done done[8];
    uint32_t left = count, under_way = 0;
    CHECK(count <= SLOTS);
    while (left > 0) {
        for (uint32_t i = 0; i < count; i++) {
            int error = states[i] == WAITING ? submit(end->port, end->source, &copies[i], first + i) : EALREADY;
            CHECK(error == 0 || error == EALREADY || (error == EAGAIN && under_way > 0));
            if (error != 0)
                continue;
            states[i] = UNDER_WAY;
            under_way++;
        }
        for (size_t i = take_done(end, done, 8); i-- > 0; under_way--) {
            uint64_t index = done[i].cookie - first;
            CHECK(index < count && states[index] == UNDER_WAY);
            CHECK(done[i].status == 0 || (end->is_failing && done[i].status == -EIO));
            states[index] = done[i].status == 0 ? DONE : WAITING;
            left -= done[i].status == 0;
            end->failed_count += done[i].status != 0;
            end->copy_count++;
            end->byte_count += done[i].status == 0 ? copies[index].bytes : 0;
        }
    }
}

/* A word of the window, by the engine. */
static void copy_word(struct end *end, enum word word, uint64_t value)
{
    const struct copy copy = {.source = BYTES, .offset = word * sizeof value, .bytes = sizeof value};
    end->from_word[0] = value;
    copy_all(end, &copy, 1, 1u << 16);
}

/* Opening */

static void open_end(struct end *end)
{
    struct quoit_ntb_info info;
    end->port = open(end->device, O_RDWR | O_CLOEXEC);
    end->on_link = eventfd(0, EFD_CLOEXEC);
    end->on_dma = eventfd(0, EFD_CLOEXEC);
    CHECK(end->port >= 0 && end->on_link >= 0 && end->on_dma >= 0);
    CHECK(ioctl(end->port, QUOIT_NTB_INFO, &info) == 0 && info.has_dma);
    struct quoit_ntb_eventfd event = {.fd = end->on_link, .on_link = 1};
    CHECK(ioctl(end->port, QUOIT_NTB_EVENTFD, &event) == 0);
    event = (struct quoit_ntb_eventfd){.fd = end->on_dma, .on_dma = 1};
    CHECK(ioctl(end->port, QUOIT_NTB_EVENTFD, &event) == 0);
    struct quoit_ntb_lease lease = {.window = 0, .bytes = BYTES};
    CHECK(ioctl(end->port, QUOIT_NTB_LEASE, &lease) == 0);
    void *in = make_huge_page();
    end->memory = pin(end->port, in, BYTES);
    end->in = in;
    end->in_word = (volatile uint64_t *)(uintptr_t)end->in;
    end->out_word = map(end->port, BYTES, QUOIT_NTB_OUTBOUND(0));
    end->from = make_huge_page();
    end->source = pin(end->port, end->from, BYTES + SOURCE_MORE);
    end->from_word = (uint64_t *)(void *)(end->from + BYTES);
    end->theirs = malloc(BYTES);
    CHECK(end->theirs != NULL);
    fill_source(end->from, end->is_a);
    fill_source(end->theirs, !end->is_a);
}

/* Tests */

/* Copies without an end, until it is killed. */
static _Noreturn void run_child(const struct end *end, _Atomic uint64_t *accepted)
{
    struct quoit_ntb_done done[8];
    int port = open(end->device, O_RDWR), owner = end->port, memory;
    CHECK(port >= 0 && ioctl(port, QUOIT_NTB_JOIN, &owner) == 0);
    memory = pin(port, make_huge_page(), BYTES);
    for (uint64_t i = 0;; i++) {
        const struct copy copy = copy_of(end->is_a, 0, i % SLOTS);
        int error = submit(port, memory, &copy, i);
        CHECK(error == 0 || error == EAGAIN);
        *accepted += error == 0;
        CHECK(error == 0 || read(port, done, sizeof done) >= 0);
    }
}

/* The engine is free again, and what it was about to copy does not arrive: the first round sees its own bytes alone. */
static void check_killed(struct end *end)
{
    _Atomic uint64_t *accepted = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK((void *)accepted != MAP_FAILED);
    for (int i = 0; i < CHILDREN; i++) {
        int status;
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0)
            run_child(end, accepted);
        for (double end_s = now_s() + PATIENCE_S; *accepted == 0 && now_s() < end_s;)
            usleep(1000); /* the first one copies for certain */
        usleep(1000u * (uint32_t)(mix((uint64_t)i) % 40));
        kill(child, SIGKILL);
        CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    printf("%d processes killed, of which %llu copies were accepted\n", CHILDREN, (unsigned long long)*accepted);
    CHECK(*accepted > 0);
    end->out_word[PHASE] = 1;
    await_word(end->in_word + PHASE, 1);
}

static void check_bytes(const struct end *end, uint64_t round)
{
    for (uint64_t slot = 0; slot < SLOTS; slot++) {
        const struct copy copy = copy_of(!end->is_a, round, slot);
        for (uint64_t at = SLOTS_AT + slot * SLOT_BYTES; at < SLOTS_AT + (slot + 1) * SLOT_BYTES; at++) {
            bool is_copied = at >= copy.offset && at < copy.offset + copy.bytes;
            unsigned char expected = is_copied ? end->theirs[copy.source + at - copy.offset] : background(round);
            if (end->in[at] != expected)
                printf("round %llu, slot %llu, byte %llu of %llu at %llu: %#x, not %#x\n", (unsigned long long)round,
                       (unsigned long long)slot, (unsigned long long)(at - copy.offset), (unsigned long long)copy.bytes,
                       (unsigned long long)copy.offset, end->in[at], expected);
            CHECK(end->in[at] == expected);
        }
    }
}

static void check_round(struct end *end, uint64_t round)
{
    struct copy copies[SLOTS];
    for (uint64_t slot = 0; slot < SLOTS; slot++)
        copies[slot] = copy_of(end->is_a, round, slot);
    for (size_t at = SLOTS_AT; at < BYTES; at++)
        end->in[at] = background(round);
    end->out_word[READY] = round;
    await_word(end->in_word + READY, round);
    copy_all(end, copies, SLOTS, round << 8);
    copy_word(end, MARK, round); /* arrives behind them */
    await_word(end->in_word + MARK, round);
    check_bytes(end, round);
    end->out_word[CHECKED] = round;
    await_word(end->in_word + CHECKED, round);
}

/* What is stored behind a copy that is late is seen before it. */
static void check_overtaking(struct end *end)
{
    uint32_t overtaken = 0;
    for (uint64_t i = 1; i <= RACES; i++) {
        if (end->is_a) {
            const struct copy copy = {.source = BYTES + 8, .offset = DATA * 8, .bytes = 8};
            struct quoit_ntb_done done;
            end->from_word[1] = i;
            CHECK(submit(end->port, end->source, &copy, i) == 0);
            end->out_word[FLAG] = i;
            CHECK(take_done(end, &done, 1) == 1 && done.cookie == i);
            if (done.status != 0)
                copy_all(end, &copy, 1, i);
            await_word(end->in_word + SEEN, i);
        } else {
            await_word(end->in_word + FLAG, i);
            overtaken += end->in_word[DATA] != i;
            await_word(end->in_word + DATA, i);
            end->out_word[SEEN] = i;
        }
    }
    if (!end->is_a)
        printf("%u of %u stores overtook a copy\n", overtaken, RACES);
    CHECK(end->is_a || !end->is_late || overtaken > 0);
}

/* a's copies are under way when b lets the link go: each completes once, and none arrives in the next epoch. */
static void lose_as_a(struct end *end)
{
    struct quoit_ntb_done done[SLOTS];
    bool is_done[SLOTS] = {false};
    uint32_t lost = 0;
    for (uint64_t slot = 0; slot < SLOTS; slot++) {
        const struct copy copy = copy_of(true, ROUNDS, slot);
        CHECK(submit(end->port, end->source, &copy, slot) == 0);
    }
    end->out_word[LOSS] = 1;
    for (uint32_t left = SLOTS; left > 0;) {
        size_t count = take_done(end, done, SLOTS);
        CHECK(count <= left);
        left -= (uint32_t)count;
        for (size_t i = 0; i < count; i++) {
            CHECK(done[i].cookie < SLOTS && !is_done[done[i].cookie]);
            is_done[done[i].cookie] = true;
            CHECK(done[i].status == 0 || done[i].status == -ENOLINK || (end->is_failing && done[i].status == -EIO));
            lost += done[i].status == -ENOLINK;
        }
    }
    end->epoch = await_epoch_after(end->port, end->epoch);
    const struct copy copy = copy_of(true, ROUNDS, 0);
    CHECK(submit(end->port, end->source, &copy, 0) == ENOLINK);
    CHECK(ioctl(end->port, QUOIT_NTB_ACCEPT, &end->epoch) == 0);
    expose(end->port, end->memory, BYTES);
    usleep(1000u * LATE_MS);
    CHECK(read(end->port, done, sizeof done) == 0);
    printf("%u of %u copies ended with the link\n", lost, SLOTS);
    CHECK(!end->is_late || lost > 0);
    end->out_word[PHASE] = 2;
}

static void lose_as_b(struct end *end)
{
    await_word(end->in_word + LOSS, 1);
    release(end->port);
    memset((void *)(uintptr_t)end->in, 0, BYTES);
    expose(end->port, end->memory, BYTES); /* holds when the link comes up */
    end->epoch = bring_up(end->port, end->on_link).epoch;
    CHECK(ioctl(end->port, QUOIT_NTB_ACCEPT, &end->epoch) == 0);
    await_word(end->in_word + PHASE, 2);
    for (size_t at = SLOTS_AT; at < BYTES; at++)
        CHECK(end->in[at] == 0);
}

int main(int argc, char **argv)
{
    struct end end = {.is_a = argc > 2 && argv[2][0] == 'a', .device = argv[1]};
    CHECK(argc >= 3);
    for (int i = 3; i < argc; i++) {
        end.is_late |= strcmp(argv[i], "late") == 0;
        end.is_failing |= strcmp(argv[i], "failing") == 0;
    }
    open_end(&end);
    end.epoch = meet(end.port, end.on_link, end.memory, BYTES);
    check_killed(&end);
    double begin_s = now_s();
    for (uint64_t round = 1; round <= ROUNDS; round++)
        check_round(&end, round);
    printf("%llu copies, %llu KiB, %llu failed and were repeated, %.1f s\n", (unsigned long long)end.copy_count,
           (unsigned long long)end.byte_count >> 10, (unsigned long long)end.failed_count, now_s() - begin_s);
    CHECK(!end.is_failing || end.failed_count > 0);
    check_overtaking(&end);
    if (end.is_a)
        lose_as_a(&end);
    else
        lose_as_b(&end);
    check_round(&end, ROUNDS + 1); /* the engine works in the new epoch too */
    printf("port_dma: %s passed\n", argv[2]);
    sleep(1); /* the last word is on its way */
    return 0;
}
