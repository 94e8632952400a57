/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up and finalize: the process becomes a PE and stops being one. */
#include "shmem/job.h"
#include "base/assert.h"
#include "base/log.h"
#include "local/data_segment.h"

#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Every PE tries to see its heap here, so that heap addresses are the same on all PEs, which helps in debugging.
 * Nothing depends on it: where the address is taken (as under a thread sanitizer) the heap is seen elsewhere. */
#define HEAP_ADDRESS ((void *)0x300000000000)

struct quoit_job quoit_job;

__attribute__((noreturn)) static void cannot_start(const char *what, enum quoit_status status)
{
    char text[256];
    snprintf(text, sizeof text, "shmem_init: %s: %s", what, quoit_status_text(status));
    quoit_boot_abort(&quoit_job.boot, 1, status == QUOIT_GONE ? "" : text);
}

static void map_heap(struct quoit_boot *boot)
{
    uint64_t offset = quoit_layout_area(&boot->layout, boot->pe - boot->layout.first_pe) + boot->layout.area_heap;
    uint64_t bytes = boot->layout.shape.heap_bytes;
    void *at = mmap(HEAP_ADDRESS, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
                    boot->memory_fd, (off_t)offset);
    if (at != MAP_FAILED && at != HEAP_ADDRESS) {
        munmap(at, bytes); /* a kernel that does not know the flag */
        at = MAP_FAILED;
    }
    if (at == MAP_FAILED)
        at = (char *)boot->memory + offset;
    quoit_job.heap = (struct quoit_region){
        .base = (uintptr_t)at, .bytes = 0, .area_offset = boot->layout.area_heap}; /* grows with shmem_malloc */
}

static void share_variables(struct quoit_boot *boot, const struct quoit_data_segment *segment)
{
    uint64_t offset = quoit_layout_area(&boot->layout, boot->pe - boot->layout.first_pe) + boot->layout.area_data;
    enum quoit_status status =
        quoit_data_segment_share(segment, boot->memory_fd, offset, (char *)boot->memory + offset);
    if (status != QUOIT_OK)
        cannot_start("the program's global variables could not be shared", status);
    quoit_job.data = (struct quoit_region){
        .base = (uintptr_t)segment->base, .bytes = segment->bytes, .area_offset = boot->layout.area_data};
}

static void open_fabric(struct quoit_boot *boot, const struct quoit_data_segment *segment)
{
    struct quoit_fabric_config config = {
        .layout = &boot->layout, .memory = boot->memory, .pe_self = boot->pe, .policy = boot->policy};
    for (int side = 0; side < QUOIT_SIDE_COUNT && boot->layout.shape.host_count > 1; side++)
        config.ports[side] = (struct quoit_port_config){
            .driver = &quoit_port_emulated,
            .memory = {.base = boot->memory, .bytes = boot->layout.total_bytes},
            .driver_config = &boot->links[side],
        };
    enum quoit_status status = quoit_fabric_open(&config, &quoit_job.fabric);
    if (status != QUOIT_OK)
        cannot_start("the ways to the other PEs could not be opened", status);
    quoit_job.fabric->regions[0] = &quoit_job.heap;
    quoit_job.fabric->regions[1] = &quoit_job.data;
    atomic_store(&quoit_job.fabric->shared_self->load_base, segment->load_base);
}

static void make_world(void)
{
    const struct quoit_team_shape world = {.start = 0, .stride = 1, .size = quoit_job.boot.layout.shape.pe_count};
    quoit_job.world = quoit_team_new(quoit_job.fabric, &world, 0);
    quoit_job.allocator = quoit_heap_new(quoit_job.boot.layout.shape.heap_bytes);
    if (!quoit_job.world || !quoit_job.allocator)
        cannot_start("no memory", QUOIT_NO_MEMORY);
}

/* exit(0) or a return from main without shmem_finalize is a finalize; exit with another status is a failure, which the
 * launcher sees. A forked child is no PE. */
static void at_exit(int status, void *arg)
{
    if (status == 0 && quoit_job.state == QUOIT_JOB_RUNNING && getpid() == (pid_t)(intptr_t)arg)
        quoit_job_finish();
}

void quoit_job_start(int thread_level)
{
    struct quoit_data_segment segment;
    quoit_assert(quoit_job.state != QUOIT_JOB_RUNNING);
    quoit_data_segment_find(&segment);
    enum quoit_status status = quoit_boot_start(segment.bytes, &quoit_job.boot);
    if (status != QUOIT_OK)
        cannot_start("the job could not be joined", status);

    struct quoit_boot *boot = &quoit_job.boot;
    char who[32];
    snprintf(who, sizeof who, "PE %u", boot->pe);
    quoit_log_setup(QUOIT_LOG_WARN, who);
    map_heap(boot);
    share_variables(boot, &segment);
    status = quoit_boot_ready(boot);
    if (status != QUOIT_OK)
        cannot_start("the other PEs did not come", status);
    open_fabric(boot, &segment);
    make_world();

    quoit_job.thread_level = thread_level;
    quoit_job.pe = boot->pe;
    quoit_job.pe_count = boot->layout.shape.pe_count;
    quoit_job.state = QUOIT_JOB_RUNNING;
    on_exit(at_exit, (void *)(intptr_t)getpid());
}

void quoit_job_finish(void)
{
    quoit_assert(quoit_job.state == QUOIT_JOB_RUNNING);
    quoit_fabric_quiet(quoit_job.fabric, &quoit_job.fabric->default_context);
    quoit_coll_sync(quoit_job.world, "shmem_finalize");
    quoit_boot_finalized(&quoit_job.boot);
    quoit_job.state = QUOIT_JOB_FINALIZED;
    quoit_job.pe_count = 0;
    quoit_job.heap.bytes = 0;
    quoit_job.data.bytes = 0;
    quoit_team_delete(quoit_job.world);
    quoit_heap_delete(quoit_job.allocator);
    quoit_fabric_close(quoit_job.fabric);
    quoit_job.fabric = NULL;
    /* The memory stays mapped: the program's variables live in it, and pointers into the heap may still be read. */
}
