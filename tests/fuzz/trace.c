/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: whatever a PE writes into its event ring, the launcher's reader stays within it and terminates. Method: the
 * rings of a job of two hosts, with valid events mutated by the input, are drained to nowhere. Input: mutations, of all
 * rings in turn; after a leading 'T' each event is of another thread, and few threads may have a track. */
#include "oshrun/job.h"
#include "oshrun/trace.h"
#include "fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

#define EVENT_COUNT (4 * QUOIT_TRACE_EVENTS_MIN)

#define TRACKS_MAX 64 /* of the threads of a PE */

static struct plan plan;
static struct job job;
static struct pe pes[2];
static struct host hosts[2];

static void make_job(void)
{
    char problem[QUOIT_OPTION_PROBLEM_BYTES];
    quoit_options_default(&plan.options);
    must(quoit_options_set(&plan.options, QUOIT_OPT_TRACE, "/dev/null", QUOIT_FROM_COMMAND_LINE, "--trace", problem));
    plan.pe_count = plan.host_count = 2;
    job = (struct job){.plan = &plan, .pes = pes, .hosts = hosts, .has_layout = true};
    job.config = (struct quoit_job_config){.host_count = 2,
                                           .pe_count = 2,
                                           .lane_count = 1,
                                           .slot_count = 4,
                                           .chunk_bytes = 256,
                                           .trace_count = EVENT_COUNT,
                                           .data_bytes = 4096,
                                           .heap_bytes = 2u << 20};
    for (uint32_t i = 0; i < 2; i++) {
        pes[i] = (struct pe){.job = &job, .index = i, .host = i, .program_pid = 1};
        hosts[i] = (struct host){.job = &job, .index = i};
        must(quoit_layout_make(&job.config, i, &hosts[i].layout) == QUOIT_OK);
        hosts[i].front = aligned_alloc(4096, (hosts[i].layout.channels + 4095) / 4096 * 4096);
        must(hosts[i].front != NULL);
    }
}

/* As if a program had written the whole ring. */
static void fill(struct quoit_trace_ring *ring, bool is_crowded, const uint8_t *data, size_t bytes)
{
    const size_t slots_bytes = 16 * sizeof(struct quoit_trace_slot);
    memset(ring, 0, quoit_trace_ring_bytes(EVENT_COUNT));
    ring->event_count = EVENT_COUNT;
    for (uint32_t i = 0; i < EVENT_COUNT; i++) {
        struct quoit_trace_slot *slot = &ring->slots[i];
        slot->event = (struct quoit_trace_event){.kind = (uint8_t)(1 + i % (QUOIT_TRACE_KIND_COUNT - 1)),
                                                 .frame = QUOIT_FRAME_PUT,
                                                 .begin_ns = 1000 * i,
                                                 .end_ns = 1000 * i + 500,
                                                 .bytes = 64,
                                                 .pe = i % 2,
                                                 .value = i % 3 ? i : QUOIT_TRACE_DMAS_MAX - 1 + i % 2,
                                                 .tid = is_crowded ? 1 + i : 1,
                                                 .name = "shmem_putmem"};
        atomic_init(&slot->sequence, i + 1);
    }
    fuzz_change(ring->slots, slots_bytes, data, bytes);
}

/* How often a word occurs in a file. */
static uint32_t count_in(int fd, const char *word)
{
    off_t bytes = lseek(fd, 0, SEEK_END);
    char *text = mmap(NULL, (size_t)bytes, PROT_READ, MAP_SHARED, fd, 0);
    uint32_t count = 0;
    must(text != MAP_FAILED);
    for (const char *at = text; (at = memmem(at, (size_t)(text + bytes - at), word, strlen(word))) != NULL; at++)
        count++;
    munmap(text, (size_t)bytes);
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static char path[32];
    bool is_crowded = bytes > 0 && data[0] == 'T';
    int fd = memfd_create("trace", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (!job.plan)
        make_job();
    plan.options.values[QUOIT_OPT_TRACE].text = path;
    must(fd >= 0 && trace_open(&job));
    for (uint32_t host = 0; host < 2; host++)
        for (uint32_t i = 0; i < 2; i++) { /* its PE, its lane */
            struct quoit_trace_ring *ring = quoit_memory_trace(&hosts[host].layout, hosts[host].front, i);
            size_t part = (bytes - is_crowded) / 4 / 3 * 3;
            fill(ring, is_crowded, data + is_crowded + (2 * host + i) * part, part);
        }
    must(trace_finish(&job));
    /* a track names itself and its thread */
    must(count_in(fd, "host0 thread ") <= 2 * TRACKS_MAX && count_in(fd, "host0 other threads") <= 2);
    must(!is_crowded || bytes > 1 || count_in(fd, "host0 other threads") == 2);
    must(count_in(fd, "lane 0 DMA") <= 2 * QUOIT_TRACE_DMAS_MAX); /* of two lanes */
    close(fd);
    return 0;
}
