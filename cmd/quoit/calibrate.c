/* SPDX-License-Identifier: BSD-3-Clause */
#include "calibrate.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/json.h"
#include "env/clock.h"
#include "env/limits.h"
#include "env/park.h"

#define COPY_BYTES_MAX (4u << 20)
#define BATCHES        101
#define BATCH_NS       200000u /* shorter than a slice, so that most batches have a processor to themselves */
#define WAKE_COUNT     301
#define WAKE_PAUSE_NS  50000u     /* until a sleeper sleeps */
#define ROUNDS         100u       /* of a batch of two threads */
#define CACHE_BYTES    (1u << 20) /* where the system does not tell */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double calibrate_median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare);
    return values[count / 2];
}

/* So often that a batch lasts BATCH_NS. */
static uint64_t find_count(void (*run)(void *arg), void *arg)
{
    uint64_t count = 1, start_ns;
    do {
        count *= 2;
        start_ns = quoit_clock_now_ns();
        for (uint64_t i = 0; i < count; i++)
            run(arg);
    } while (quoit_clock_now_ns() - start_ns < BATCH_NS);
    return count;
}

double calibrate_sum_of(const struct calibrate_term *terms, int term_count)
{
    double values[BATCHES] = {0};
    uint64_t counts[CALIBRATE_TERM_MAX];
    for (int i = 0; i < term_count; i++)
        counts[i] = find_count(terms[i].run, terms[i].arg);
    for (int batch = 0; batch < BATCHES; batch++)
        for (int i = 0; i < term_count; i++) {
            uint64_t start_ns = quoit_clock_now_ns();
            for (uint64_t k = 0; k < counts[i]; k++)
                terms[i].run(terms[i].arg);
            values[batch] += terms[i].factor * (double)(quoit_clock_now_ns() - start_ns) / (double)counts[i];
        }
    return calibrate_median(values, BATCHES);
}

double calibrate_time_of(void (*run)(void *arg), void *arg)
{
    return calibrate_sum_of(&(const struct calibrate_term){.run = run, .arg = arg, .factor = 1}, 1);
}

struct copy {
    char *to;
    const char *from;
    size_t bytes;
};

static void copy(void *arg)
{
    const struct copy *one = arg;
    memcpy(one->to, one->from, one->bytes);
    __asm__ __volatile__("" : : "r"(one->to) : "memory");
}

static void pause_once(void *arg)
{
    (void)arg;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static void yield_once(void *arg)
{
    (void)arg;
    sched_yield();
}

static void prepare_once(void *arg)
{
    quoit_park_prepare(arg);
    quoit_park_cancel(arg);
}

static void store_once(void *arg)
{
    atomic_store_explicit((_Atomic uint64_t *)arg, 1, memory_order_seq_cst);
}

/* Two threads */

struct meeting {
    _Alignas(64) _Atomic uint64_t turn;
    _Alignas(64) _Atomic uint64_t woken_ns;
    struct quoit_park park;
    _Atomic bool is_over;
    bool yields;
    int core; /* of the other thread; -1: any */
    double values[BATCHES];
};

void calibrate_stay_on(int core)
{
    cpu_set_t set;
    if (core < 0)
        return;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    sched_setaffinity(0, sizeof set, &set);
}

bool calibrate_beside(int core, void (*own)(void *arg), void *(*other)(void *arg), void *arg)
{
    cpu_set_t before;
    pthread_t thread;
    sched_getaffinity(0, sizeof before, &before);
    calibrate_stay_on(core);
    bool is_started = pthread_create(&thread, NULL, other, arg) == 0;
    if (is_started) {
        own(arg);
        pthread_join(thread, NULL);
    }
    sched_setaffinity(0, sizeof before, &before);
    return is_started;
}

static void take_turns(struct meeting *meeting, uint64_t mine, double *values)
{
    for (uint64_t i = 0; i < BATCHES * ROUNDS; i++) {
        uint64_t start_ns = values && i % ROUNDS == 0 ? quoit_clock_now_ns() : 0;
        while (atomic_load_explicit(&meeting->turn, memory_order_acquire) != 2 * i + mine)
            if (meeting->yields)
                sched_yield();
        atomic_store_explicit(&meeting->turn, 2 * i + mine + 1, memory_order_release);
        if (start_ns)
            values[i / ROUNDS] = -(double)start_ns;
        if (values && i % ROUNDS == ROUNDS - 1)
            values[i / ROUNDS] += (double)quoit_clock_now_ns();
    }
}

static void *answer(void *arg)
{
    struct meeting *meeting = arg;
    calibrate_stay_on(meeting->core);
    take_turns(meeting, 1, NULL);
    return NULL;
}

static void ask(void *arg)
{
    struct meeting *meeting = arg;
    take_turns(meeting, 0, meeting->values);
}

/* One-way time in ns between two threads on these cores; 0: no thread could be started. */
static double way_ns(int own_core, int other_core, bool yields)
{
    struct meeting meeting = {.core = other_core, .yields = yields};
    if (!calibrate_beside(own_core, ask, answer, &meeting))
        return 0;
    return calibrate_median(meeting.values, BATCHES) / (2 * ROUNDS);
}

static void *sleep_again(void *arg)
{
    struct meeting *meeting = arg;
    while (!atomic_load(&meeting->is_over)) {
        uint32_t key = quoit_park_prepare(&meeting->park);
        quoit_park_sleep(&meeting->park, key, 100000000);
        atomic_store(&meeting->woken_ns, quoit_clock_now_ns());
    }
    return NULL;
}

/* Waking a sleeper: the duration of the call, and the time until the sleeper runs. */
static void time_wakes(double *call_ns_out, double *wake_ns_out)
{
    struct meeting meeting = {.core = -1};
    double calls[WAKE_COUNT], wakes[WAKE_COUNT];
    pthread_t thread;
    *call_ns_out = *wake_ns_out = 0;
    if (pthread_create(&thread, NULL, sleep_again, &meeting) != 0)
        return;
    for (int i = 0; i < WAKE_COUNT; i++) {
        quoit_clock_sleep_ns(WAKE_PAUSE_NS);
        while (atomic_load(&meeting.park.sleeper_count) == 0)
            sched_yield();
        quoit_clock_sleep_ns(WAKE_PAUSE_NS); /* it has announced itself and is about to sleep */
        atomic_store(&meeting.woken_ns, 0);
        uint64_t start_ns = quoit_clock_now_ns(), woken_ns;
        quoit_park_wake(&meeting.park);
        calls[i] = (double)(quoit_clock_now_ns() - start_ns);
        while ((woken_ns = atomic_load(&meeting.woken_ns)) == 0)
            sched_yield();
        wakes[i] = woken_ns > start_ns ? (double)(woken_ns - start_ns) : 0;
    }
    atomic_store(&meeting.is_over, true);
    quoit_park_wake(&meeting.park);
    pthread_join(thread, NULL);
    *call_ns_out = calibrate_median(calls, WAKE_COUNT);
    *wake_ns_out = calibrate_median(wakes, WAKE_COUNT);
}

/* Chunks that processors hand over to each other: one copies from a buffer of its own into the chunk, and the other one
 * from the chunk into its own. */
#define CHUNK_BYTES 32768u
#define HANDED_WARM 16

struct handover {
    _Alignas(64) _Atomic uint64_t turn;
    char *buffers; /* the chunk, and one of each thread */
    int core;
    double write_ns[BATCHES], read_ns[BATCHES];
};

static void await_turn(const _Atomic uint64_t *turn, uint64_t value)
{
    while (atomic_load_explicit(turn, memory_order_acquire) != value)
        ;
}

static void copy_in_turn(struct handover *handover, uint64_t mine, char *own, double *values)
{
    for (uint64_t i = 0; i < BATCHES + HANDED_WARM; i++) {
        await_turn(&handover->turn, 2 * i + mine);
        uint64_t start_ns = quoit_clock_now_ns();
        memcpy(mine ? own : handover->buffers, mine ? handover->buffers : own, CHUNK_BYTES);
        __asm__ __volatile__("" : : "r"(own) : "memory");
        if (i >= HANDED_WARM)
            values[i - HANDED_WARM] = (double)(quoit_clock_now_ns() - start_ns);
        atomic_store_explicit(&handover->turn, 2 * i + mine + 1, memory_order_release);
    }
}

static void *take_chunks(void *arg)
{
    struct handover *handover = arg;
    calibrate_stay_on(handover->core);
    copy_in_turn(handover, 1, handover->buffers + CHUNK_BYTES, handover->read_ns);
    return NULL;
}

static void give_chunks(void *arg)
{
    struct handover *handover = arg;
    copy_in_turn(handover, 0, handover->buffers + 2 * CHUNK_BYTES, handover->write_ns);
}

/* ns of a chunk: written where the other one read, and read where the other one wrote. */
static void time_handover(char *buffers, const int cores[2], double *write_ns_out, double *read_ns_out)
{
    struct handover handover = {.buffers = buffers, .core = cores[1]};
    *write_ns_out = *read_ns_out = 0;
    if (cores[0] == cores[1] || !calibrate_beside(cores[0], give_chunks, take_chunks, &handover))
        return;
    *write_ns_out = calibrate_median(handover.write_ns, BATCHES);
    *read_ns_out = calibrate_median(handover.read_ns, BATCHES);
}

/* Single lines that one processor writes and the other one reads, each by an address that depends on the line before.
 * Every line is in a page of its own, so that nothing fetches it ahead. */
#define LINES       64
#define LINE_STRIDE (4096 + 64)
_Static_assert(LINES *LINE_STRIDE <= COPY_BYTES_MAX, "the lines have room");

struct lines {
    _Alignas(64) _Atomic uint64_t turn;
    char *at;
    int core;
    double read_ns[BATCHES];
    double own_ns; /* of lines that no other processor wrote */
};

static void read_lines(void *arg)
{
    const struct lines *lines = arg;
    const char *at = lines->at;
    for (size_t i = 0; i < LINES; i++)
        at += LINE_STRIDE + *(const volatile uint64_t *)(const void *)at; /* which is 0 */
}

static void *read_in_turn(void *arg)
{
    struct lines *lines = arg;
    calibrate_stay_on(lines->core);
    for (uint64_t i = 0; i < BATCHES; i++) {
        await_turn(&lines->turn, 2 * i + 1);
        uint64_t start_ns = quoit_clock_now_ns();
        read_lines(lines);
        lines->read_ns[i] = (double)(quoit_clock_now_ns() - start_ns);
        atomic_store_explicit(&lines->turn, 2 * i + 2, memory_order_release);
    }
    return NULL;
}

static void write_in_turn(void *arg)
{
    struct lines *lines = arg;
    for (uint64_t i = 0; i < BATCHES; i++) {
        await_turn(&lines->turn, 2 * i);
        for (size_t line = 0; line < LINES; line++)
            *(volatile uint64_t *)(void *)(lines->at + line * LINE_STRIDE) = 0;
        atomic_store_explicit(&lines->turn, 2 * i + 1, memory_order_release);
    }
    await_turn(&lines->turn, 2 * (uint64_t)BATCHES);
    lines->own_ns = calibrate_time_of(read_lines, lines);
}

/* ns to read a line that another processor wrote, beyond one of the own. 0: there is one processor. */
static double line_read_ns(char *buffers, const int cores[2])
{
    struct lines lines = {.at = buffers, .core = cores[1]};
    memset(buffers, 0, (size_t)LINES * LINE_STRIDE);
    if (cores[0] == cores[1] || !calibrate_beside(cores[0], write_in_turn, read_in_turn, &lines))
        return 0;
    double ns = (calibrate_median(lines.read_ns, BATCHES) - lines.own_ns) / LINES;
    return ns > 0 ? ns : 0;
}

static void print_switches(struct quoit_json *json, int core)
{
    static const int counts[] = {2, 4, CALIBRATE_CROWD_MAX};
    double ns[3];
    calibrate_crowds(core, counts, 3, ns);
    quoit_json_number(json, "switch_ns", ns[0]);
    quoit_json_number(json, "switch_of_4_ns", ns[1]);
    quoit_json_number(json, "switch_of_8_ns", ns[2]);
    quoit_json_number(json, "thread_switch_ns", way_ns(core, core, true));
}

static void print_handover(struct quoit_json *json, char *buffers, const int cores[2])
{
    double write_ns, read_ns;
    time_handover(buffers, cores, &write_ns, &read_ns);
    long cache_bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
    quoit_json_number(json, "handed_write_ns", write_ns);
    quoit_json_number(json, "handed_read_ns", read_ns);
    quoit_json_count(json, "cache_bytes", cache_bytes > 0 ? (uint64_t)cache_bytes : CACHE_BYTES);
}

/* Two processors that this process may use; the same one twice if there is only one. */
static void find_cores(int cores_out[2])
{
    cpu_set_t set;
    int count = 0;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof set, &set);
    for (int core = 0; core < CPU_SETSIZE && count < 2; core++)
        if (CPU_ISSET(core, &set))
            cores_out[count++] = core;
    if (count < 2)
        cores_out[1] = cores_out[0];
}

bool calibrate_print(FILE *out)
{
    struct quoit_json json;
    struct quoit_park park = {.epoch = 0};
    _Alignas(64) _Atomic uint64_t word = 0;
    double call_ns, wake_ns;
    int cores[2] = {-1, -1};
    char *buffers = mmap(NULL, 2 * (size_t)COPY_BYTES_MAX, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (buffers == MAP_FAILED)
        return false;
    quoit_park_setup();
    find_cores(cores);
    quoit_json_start(&json, out);
    quoit_json_open_object(&json, NULL);
    quoit_json_count(&json, "processors", quoit_limits_core_count());
    quoit_json_open_object(&json, "copy_ns");
    for (size_t bytes = 8; bytes <= COPY_BYTES_MAX; bytes *= 2) {
        char name[32];
        snprintf(name, sizeof name, "%zu", bytes);
        struct copy one = {.to = buffers, .from = buffers + COPY_BYTES_MAX, .bytes = bytes};
        quoit_json_number(&json, name, calibrate_time_of(copy, &one));
    }
    quoit_json_close(&json);
    time_wakes(&call_ns, &wake_ns);
    quoit_json_number(&json, "wake_call_ns", call_ns);
    quoit_json_number(&json, "wake_ns", wake_ns);
    print_switches(&json, cores[0]);
    quoit_json_number(&json, "line_ns", way_ns(cores[0], cores[1], cores[0] == cores[1]));
    quoit_json_number(&json, "line_read_ns", line_read_ns(buffers, cores));
    quoit_json_number(&json, "pause_ns", calibrate_time_of(pause_once, NULL));
    quoit_json_number(&json, "yield_ns", calibrate_time_of(yield_once, NULL));
    quoit_json_number(&json, "sleep_call_ns", calibrate_time_of(prepare_once, &park));
    quoit_json_number(&json, "store_ns", calibrate_time_of(store_once, (void *)&word));
    print_handover(&json, buffers, cores);
    bool has_ring = calibrate_ring(cores, &json);
    quoit_json_close(&json);
    munmap(buffers, 2 * (size_t)COPY_BYTES_MAX);
    return has_ring;
}
