/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up and finalize: the process becomes a PE, and ceases to be one. */
#include "shmem/handle.h"
#include "env/clock.h"
#include "shmem/audit.h"
#include "shmem/check.h"
#include "shmem/set.h"
#include "shmem/span.h"
#include "base/assert.h"
#include "base/log.h"
#include "base/options.h"
#include "boot/crash.h"
#include "boot/detect.h"
#include "boot/exit.h"
#include "boot/hosts.h"
#include "boot/heap_default.h"
#include "boot/info.h"
#include "env/map.h"
#include "env/own_file.h"
#include "local/data_segment.h"
#include "local/schedules_file.h"
#include "virtual/clock.h"

#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The heap's preferred address: in the half of the address space without the program's variables, so that the fast path
 * serves both regions, and the same on all PEs, which helps debugging. Nothing else depends on it: if the address is
 * taken (as under a thread sanitizer), the heap is mapped elsewhere. */
static void *heap_address(void)
{
    static const uintptr_t in_half[2] = {0x180000000000, 0x300000000000};
    const struct quoit_data_segment *data = quoit_data_segments_main(&quoit_job.segments);
    return (void *)in_half[!quoit_half(data ? data->base : NULL)];
}

struct quoit_job quoit_job;

__attribute__((noreturn)) static void cannot_start(const char *what, enum quoit_status status)
{
    char text[256];
    snprintf(text, sizeof text, "shmem_init: %s: %s", what, quoit_status_text(status));
    quoit_boot_abort(&quoit_job.boot, 1, status == QUOIT_GONE ? "" : text);
}

static void map_heap(struct quoit_boot *boot)
{
    uint64_t offset = quoit_layout_segment(&boot->layout, boot->pe - boot->layout.first_pe) + boot->layout.segment_heap;
    uint64_t bytes = boot->layout.job.heap_bytes;
    void *want = heap_address();
    void *at = mmap(want, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, boot->memory_fd, (off_t)offset);
    if (at != MAP_FAILED && at != want) {
        munmap(at, bytes);
        at = MAP_FAILED;
    }
    if (at == MAP_FAILED)
        at = (char *)boot->memory + offset;
    else
        quoit_map_leave_out(at, bytes);
    quoit_job.regions.heap = (struct quoit_region){
        .base = (uintptr_t)at, .bytes = 0, .segment_offset = boot->layout.segment_heap}; /* grows with shmem_malloc */
}

static int by_address(const void *a, const void *b)
{
    const struct quoit_region *x = a, *y = b;
    return x->base < y->base ? -1 : x->base > y->base;
}

/* The regions of the data segments, whose layout is the same in every segment. */
static void set_data_regions(const struct quoit_boot *boot)
{
    const struct quoit_data_segments *segments = &quoit_job.segments;
    const struct quoit_data_segment *largest = quoit_data_segments_main(segments);
    struct quoit_regions *regions = &quoit_job.regions;
    uint64_t segment_offset = boot->layout.segment_data;
    regions->others = calloc(segments->count + 1, sizeof *regions->others);
    if (!regions->others)
        cannot_start("no memory", QUOIT_NO_MEMORY);
    for (uint32_t i = 0; i < segments->count; i++) {
        const struct quoit_data_segment *segment = &segments->list[i];
        struct quoit_region *region = segment == largest ? &regions->data : &regions->others[regions->other_count++];
        *region = (struct quoit_region){
            .base = (uintptr_t)segment->base, .bytes = segment->bytes, .segment_offset = segment_offset};
        segment_offset += segment->bytes;
    }
    qsort(regions->others, regions->other_count, sizeof *regions->others, by_address);
}

static void share_variables(struct quoit_boot *boot)
{
    uint64_t offset = quoit_layout_segment(&boot->layout, boot->pe - boot->layout.first_pe) + boot->layout.segment_data;
    enum quoit_status status =
        quoit_data_segments_share(&quoit_job.segments, boot->memory_fd, offset, (char *)boot->memory + offset);
    if (status != QUOIT_OK)
        cannot_start("the program's global variables could not be shared", status);
    set_data_regions(boot);
}

/* --network-direct. */
static enum quoit_pe_endpoint_use pe_endpoint_use_of(const struct quoit_options *options)
{
    const char *use = options->values[QUOIT_OPT_NETWORK_DIRECT].text;
    if (strcmp(use, "auto") == 0)
        return QUOIT_PE_ENDPOINT_AUTO;
    return strcmp(use, "yes") == 0 ? QUOIT_PE_ENDPOINT_YES : QUOIT_PE_ENDPOINT_NO;
}

static void open_fabric(struct quoit_boot *boot, const struct quoit_options *options)
{
    struct quoit_fabric_config config = {.layout = &boot->layout,
                                         .memory = boot->memory,
                                         .pe_self = boot->pe,
                                         .policy = ((const struct quoit_host_header *)boot->memory)->machine.policy,
                                         .paths = quoit_job.paths,
                                         .pe_endpoint_use = pe_endpoint_use_of(options)};
    for (int side = 0; side < QUOIT_SIDE_COUNT && boot->layout.job.host_count > 1; side++)
        config.ports[side] = (struct quoit_port_config){
            .driver = boot->driver,
            .memory = {.base = boot->memory, .bytes = boot->layout.total_bytes},
            .endpoint = &boot->ends[side],
        };
    enum quoit_status status = quoit_fabric_open(&config, &quoit_job.fabric);
    if (status != QUOIT_OK)
        cannot_start("the transports to the other PEs could not be opened", status);
    quoit_job.fabric->self.regions = &quoit_job.regions;
    atomic_store(&quoit_job.fabric->self.shared->load_base, quoit_job.segments.load_base);
}

/* Variables that only oshrun reads, under another launcher: one line for the job names them. */
static void warn_of_idle_variables(const struct quoit_boot *boot, const struct quoit_options *options)
{
    char names[256] = "";
    uint32_t count = 0;
    for (int id = 0; id < QUOIT_OPT_COUNT && boot->exchange.ops && boot->exchange.size > 1 && boot->pe == 0; id++) {
        const struct quoit_option *option = &quoit_options_table[id];
        bool is_of_network = id == QUOIT_OPT_NETWORK || id == QUOIT_OPT_NETWORK_PROVIDER ||
                             id == QUOIT_OPT_NETWORK_DEVICE || id == QUOIT_OPT_NETWORK_PORTS ||
                             id == QUOIT_OPT_SCHEDULES;
        bool is_idle = option->reader == QUOIT_READER_LAUNCHER || option->reader == QUOIT_READER_LINKS;
        is_idle &= !is_of_network || !quoit_job_config_has_proxies(&boot->layout.job);
        size_t used = strlen(names);
        if (!is_idle || options->values[id].source == QUOIT_FROM_DEFAULT)
            continue;
        snprintf(names + used, sizeof names - used, "%s%s", count ? ", " : "", option->variable);
        count++;
    }
    if (count)
        quoit_say("warning: %s ha%s no effect: oshrun reads %s, but another launcher started this job [Q0313]", names,
                  count == 1 ? "s" : "ve", count == 1 ? "it" : "them");
}

/* Before the other PEs may look: reads the path table, and publishes where this process has mapped the memory. */
static void announce(const struct quoit_boot *boot, const struct quoit_options *options)
{
    char problem[QUOIT_TUNED_PROBLEM_BYTES];
    uint32_t local = boot->pe - boot->layout.first_pe;
    struct quoit_pe_shared *shared = quoit_memory_pe(&boot->layout, boot->memory, local);
    if (!quoit_paths_load(&quoit_job.paths, options->values[QUOIT_OPT_PATH].text, problem) && local == 0)
        quoit_say("%s", problem); /* once per host */
    if (quoit_paths_use(&quoit_job.paths, QUOIT_COPY_CMA))
        quoit_copy_allow_cma();
    atomic_store_explicit(&shared->memory_base, (uintptr_t)boot->memory, memory_order_relaxed);
    atomic_store_explicit(&shared->process, (uint32_t)getpid(), memory_order_relaxed);
}

/* 0, or the errno with which the kernel refuses cma to some PE of the host. */
static int try_cma(const struct quoit_boot *boot)
{
    int problem = 0;
    for (uint32_t i = 0; i < boot->layout.local_count && !problem; i++) {
        struct quoit_pe_shared *shared = quoit_memory_pe(&boot->layout, boot->memory, i);
        uint64_t base = atomic_load_explicit(&shared->memory_base, memory_order_relaxed);
        struct quoit_copy_place word = {.here = (char *)&shared->memory_base,
                                        .there = base + (uint64_t)((char *)&shared->memory_base - (char *)boot->memory),
                                        .pid = atomic_load_explicit(&shared->process, memory_order_relaxed)};
        problem = quoit_copy_probe_cma(&word, base);
    }
    return problem;
}

/* Probes what this machine may refuse. If a measured table names it, the refusal is silent. */
static void try_paths(struct quoit_boot *boot)
{
    struct quoit_paths *paths = &quoit_job.paths;
    enum quoit_copy_method forced = (enum quoit_copy_method)paths->method[0][0];
    char text[256];
    if (paths->source == QUOIT_PATHS_FORCED && !quoit_copy_is_built(forced)) {
        snprintf(text, sizeof text, "--path %s: this kind of processor does not have it [Q0305]",
                 quoit_copy_method_name(forced));
        quoit_boot_abort(boot, 1, text);
    }
    if (paths->is_network && !boot->layout.job.has_loopback)
        quoit_boot_abort(
            boot, 1,
            "--path network: the job has no network to send through: oshrun joins one where its own --path or "
            "QUOIT_PATH says so; other launchers start one for jobs of several hosts alone [Q0305]");
    int problem = quoit_paths_use(paths, QUOIT_COPY_CMA) ? try_cma(boot) : 0;
    if (problem && paths->source == QUOIT_PATHS_FORCED) {
        snprintf(text, sizeof text,
                 "--path cma: the kernel refuses process_vm_readv and process_vm_writev between the PEs: %s (--path "
                 "auto does without) [Q0305]",
                 strerror(problem));
        quoit_boot_abort(boot, 1, text);
    }
    if (problem)
        quoit_paths_drop(paths, QUOIT_COPY_CMA);
}

static void set_half(struct quoit_fast *fast, const struct quoit_region *region)
{
    size_t half = quoit_half((const void *)region->base);
    fast->base[half] = region->base;
    fast->span[half] = region->bytes ? region->bytes - (QUOIT_FAST_ELEMENT_BYTES - 1) : 0;
}

void quoit_job_regions_changed(void)
{
    const struct quoit_region *heap = &quoit_job.regions.heap, *data = &quoit_job.regions.data;
    struct quoit_fast *fast = quoit_job.counted.pe_count ? &quoit_job.counted : &quoit_job.fast;
    if (fast->pe_count == 0)
        return;
    if (quoit_half((const void *)data->base) != quoit_half((const void *)heap->base))
        set_half(fast, data); /* else variables take the slow path */
    set_half(fast, heap);
}

static intptr_t shift_of(const struct quoit_region *region, const struct quoit_peer *peer)
{
    return (intptr_t)peer->segment + (intptr_t)region->segment_offset - (intptr_t)region->base;
}

/* Prepares the fast path to the PEs of this host. */
static void make_reaches(const struct quoit_layout *layout, struct quoit_fast *fast)
{
    struct quoit_reach *reaches = calloc(layout->local_count, sizeof *reaches);
    if (!reaches)
        cannot_start("no memory", QUOIT_NO_MEMORY);
    for (uint32_t i = 0; i < layout->local_count; i++) {
        const struct quoit_peer *peer = &quoit_job.fabric->peers[layout->first_pe + i];
        quoit_assert(peer->segment);
        reaches[i].shift[quoit_half((const void *)quoit_job.regions.data.base)] =
            shift_of(&quoit_job.regions.data, peer);
        reaches[i].shift[quoit_half((const void *)quoit_job.regions.heap.base)] =
            shift_of(&quoit_job.regions.heap, peer);
        reaches[i].park = peer->park;
        reaches[i].segment = peer->segment;
    }
    *fast = (struct quoit_fast){.first_pe = layout->first_pe, .pe_count = layout->local_count, .reaches = reaches};
    quoit_job_regions_changed();
}

static void make_world(void)
{
    const struct quoit_team_range world = {.start = 0, .stride = 1, .size = quoit_job.boot.layout.job.pe_count};
    quoit_job.world = quoit_team_new(quoit_job.fabric, &world, 0, quoit_job_first_flag());
    quoit_job.allocator = quoit_heap_new(quoit_job.boot.layout.job.heap_bytes);
    if (!quoit_job.world || !quoit_job.allocator)
        cannot_start("no memory", QUOIT_NO_MEMORY);
}

static void say_unknown_variable(void *arg, const char *text)
{
    (void)arg;
    quoit_say("%s", text);
}

/* Reads the environment, of which one process speaks for all. */
static struct quoit_options read_options(void)
{
    struct quoit_options options;
    char problem[QUOIT_OPTION_PROBLEM_BYTES];
    quoit_options_default(&options);
    if (!quoit_options_from_environment(&options, environ, problem))
        quoit_boot_abort(&quoit_job.boot, 2, quoit_detect_is_silent() ? "" : problem);
    if (!quoit_boot_has_oshrun() && !quoit_detect_is_silent())
        quoit_options_unknown(environ, say_unknown_variable, NULL);
    return options;
}

static void print_if_asked(const struct quoit_options *options)
{
    if (quoit_job.pe != 0)
        return;
    if (options->values[QUOIT_OPT_SHMEM_VERSION].number)
        printf("%s, OpenSHMEM %d.%d\n", SHMEM_VENDOR_STRING, SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION);
    if (options->values[QUOIT_OPT_SHMEM_INFO].number) {
        char library[PATH_MAX];
        const struct quoit_info_part part = {.name = "library", .path = library, .version = *quoit_version()};
        struct quoit_info info = {.version = SHMEM_VENDOR_STRING,
                                  .parts = &part,
                                  .part_count = quoit_own_file(library),
                                  .options = options,
                                  .job = quoit_job.boot.layout.job,
                                  .peers = quoit_job.fabric->peers,
                                  .contacts = quoit_memory_contacts(&quoit_job.boot.layout, quoit_job.boot.memory),
                                  .paths = &quoit_job.paths};
        quoit_info_print(&info, false, stdout);
    }
    fflush(stdout);
}

/* exit(0), or a return from main, without shmem_finalize finalizes implicitly; exit with another status is a failure,
 * which the launcher sees, or is told. A forked child is not a PE. */
static void at_exit(int status, void *arg)
{
    if (quoit_job.state != QUOIT_JOB_RUNNING || getpid() != (pid_t)(intptr_t)arg ||
        quoit_exit_has_begun(&quoit_job.boot))
        return;
    if (status != 0) {
        quoit_boot_exiting(&quoit_job.boot, status);
    } else {
        quoit_job.fabric->self.call = "shmem_finalize";
        quoit_job.fabric->self.call_from = NULL; /* not called from a line of the program */
        quoit_job_finish(true);
    }
}

/* Everything is set up: from here on the process is a PE. */
static void begin(int thread_level, const struct quoit_options *options)
{
    quoit_job.thread_level = thread_level;
    quoit_job.pe = quoit_job.boot.pe;
    quoit_job.pe_count = quoit_job.boot.layout.job.pe_count;
    if (options->values[QUOIT_OPT_CHECK].number)
        quoit_audit_start(quoit_job.segments.load_base);
    const struct quoit_self *self = &quoit_job.fabric->self;
    bool is_slow =
        quoit_job.audit || self->trace || quoit_job.is_virtual || quoit_job.paths.plain_bytes < QUOIT_PATHS_PLAIN_BYTES;
    if (!is_slow)
        make_reaches(&quoit_job.boot.layout, self->profile ? &quoit_job.counted : &quoit_job.fast);
    quoit_job.state = QUOIT_JOB_RUNNING;
    quoit_job.init_count = 1;
    quoit_job.counts_polls = quoit_wait_shares(quoit_job.fabric->self.waiter.policy) ||
                             quoit_job_config_has_proxies(&quoit_job.boot.layout.job);
    if (thread_level > SHMEM_THREAD_FUNNELED)
        quoit_job.fabric->self.has_threads = true;
    quoit_crash_notify(quoit_boot_crashed, &quoit_job.boot);
    quoit_crash_install(quoit_job.fabric->self.shared, &quoit_job.fabric->self.call, &quoit_job.fabric->self.call_from);
    quoit_placement_start_pe(&quoit_job.boot.layout, quoit_job.boot.memory, quoit_job.fabric->self.local);
}

/* The table for the hosts that another launcher has chosen, by the file of PE 0's user. */
static uint64_t load_schedules(const struct quoit_boot *boot, const struct quoit_options *options)
{
    char problem[QUOIT_TUNED_PROBLEM_BYTES];
    struct quoit_schedules_key key;
    uint64_t schedules;
    quoit_schedules_key_begin(&key, options);
    for (uint32_t i = 0; i < boot->hosts->count; i++)
        quoit_schedules_key_add(&key, boot->hosts->list[i].name);
    if (!quoit_schedules_load(&schedules, options->values[QUOIT_OPT_SCHEDULES].text, &key, problem))
        quoit_say("%s", problem);
    return schedules;
}

/* Under oshrun it is in the job config from the start. */
static void agree_on_schedules(struct quoit_boot *boot, const struct quoit_options *options)
{
    if (!boot->exchange.ops || boot->layout.job.host_count == 1)
        return;
    uint64_t own = boot->pe == 0 ? load_schedules(boot, options) : 0;
    boot->layout.job.schedules = quoit_coll_agree(quoit_job.world, own, "shmem_init");
    quoit_job.fabric->self.layout.job.schedules = boot->layout.job.schedules;
}

static void log_start(void)
{
    const struct quoit_layout *layout = &quoit_job.boot.layout;
    quoit_log(QUOIT_LOG_DEBUG,
              "pid %d on host %u, with %u PEs on %u hosts, thread level %d, heap at %p up to %llu bytes, variables at "
              "%p, %llu bytes",
              (int)getpid(), layout->host, quoit_job.pe_count, layout->job.host_count, quoit_job.thread_level,
              (void *)quoit_job.regions.heap.base, (unsigned long long)layout->job.heap_bytes,
              (void *)quoit_job.regions.data.base, (unsigned long long)quoit_job.regions.data.bytes);
}

static void report_checked_heap(const struct quoit_boot *boot)
{
    uint64_t bytes = boot->layout.job.heap_bytes;
    if (boot->pe == 0 && boot->heap_bytes_asked == 0 && bytes == quoit_heap_most_bytes())
        quoit_say("under Valgrind the symmetric heap has at most %llu MiB; SHMEM_SYMMETRIC_SIZE sets another limit",
                  (unsigned long long)(bytes >> 20));
}

void quoit_job_start(int thread_level)
{
    struct quoit_boot *boot = &quoit_job.boot;
    quoit_assert(quoit_job.state == QUOIT_JOB_NEW);
    boot->socket_fd = -1;
    struct quoit_options options = read_options();
    if (quoit_data_segments_find(&quoit_job.segments) != QUOIT_OK)
        cannot_start("no memory", QUOIT_NO_MEMORY);
    boot->launcher = options.values[QUOIT_OPT_LAUNCHER].text;
    boot->heap_bytes_asked = options.values[QUOIT_OPT_SYMMETRIC_SIZE].number;
    boot->network = (struct quoit_boot_network){
        .driver = options.values[QUOIT_OPT_NETWORK].text,
        .provider = options.values[QUOIT_OPT_NETWORK_PROVIDER].text,
        .device = options.values[QUOIT_OPT_NETWORK_DEVICE].text,
        .ports = options.values[QUOIT_OPT_NETWORK_PORTS].text,
        .link_timeout_ns = options.values[QUOIT_OPT_LINK_TIMEOUT].number,
        .network_limit_ns = options.values[QUOIT_OPT_NETWORK_LIMIT].number,
        .log_level = (uint32_t)quoit_options_log_level(&options),
        .has_loopback = strcmp(options.values[QUOIT_OPT_PATH].text, QUOIT_PATHS_NETWORK) == 0};
    enum quoit_status status = quoit_boot_start(quoit_job.segments.bytes, boot);
    if (status != QUOIT_OK)
        quoit_boot_abort(boot, 1, ""); /* it has been told */

    char who[32];
    quoit_job.is_heap_in_core = strcmp(options.values[QUOIT_OPT_CORE].text, "heap") == 0;
    snprintf(who, sizeof who, "PE %u", boot->pe);
    quoit_log_setup(quoit_options_log_level(&options), who);
    map_heap(boot);
    share_variables(boot);
    announce(boot, &options);
    warn_of_idle_variables(boot, &options);
    status = quoit_boot_ready(boot);
    if (status != QUOIT_OK)
        cannot_start("the other PEs did not come", status);
    if (quoit_virtual_open(&quoit_job.is_virtual) != QUOIT_OK)
        cannot_start("the virtual clock of oshrun could not be opened", QUOIT_SYSTEM);
    try_paths(boot);
    open_fabric(boot, &options);
    make_world();

    begin(thread_level, &options);
    agree_on_schedules(boot, &options);
    quoit_audit_compare_programs();
    log_start();
    report_checked_heap(boot);
    on_exit(at_exit, (void *)(intptr_t)getpid());
    print_if_asked(&options);
    if (quoit_job.is_virtual)
        quoit_virtual_join(quoit_job.pe);
}

/* A shmem_init after shmem_finalize: memory, links and proxies still exist, and team workspaces hold their last values.
 * Every PE creates its teams before any PE uses them. */
static void start_again(int thread_level)
{
    struct quoit_boot *boot = &quoit_job.boot;
    struct quoit_options options = read_options();
    set_data_regions(boot);
    if (++quoit_job.init_number >> (64 - QUOIT_TEAM_FLAG_BITS) != 0)
        cannot_start("shmem_init was called too often", QUOIT_UNSUPPORTED);
    open_fabric(boot, &options);
    make_world();
    begin(thread_level, &options);
    quoit_team_for_collective(SHMEM_TEAM_SHARED, "shmem_init");
    enum quoit_status status = quoit_boot_ready(boot);
    if (status != QUOIT_OK)
        cannot_start("the other PEs did not come", status);
}

void quoit_job_finish(bool is_exit)
{
    quoit_assert(quoit_job.state == QUOIT_JOB_RUNNING);
    struct quoit_span span = quoit_span_begin("shmem_finalize", 0, QUOIT_TRACE_NO_PE);
    quoit_span_world(&span, 0);
    QUOIT_AUDIT_COLLECTIVE(quoit_team_of(SHMEM_TEAM_WORLD, "shmem_finalize"), "shmem_finalize", {0});
    if (quoit_job.audit)
        quoit_audit_finish();
    quoit_fabric_quiet(quoit_job.fabric, &quoit_job.fabric->default_context);
    quoit_handles_quiet();
    quoit_sets_quiet();
    quoit_boot_leaving(&quoit_job.boot, quoit_coll_count(quoit_job.world), is_exit);
    quoit_coll_sync(quoit_job.world, "shmem_finalize");
    quoit_fabric_quiet(quoit_job.fabric,
                       NULL); /* messages of the sync may be lost with a link while others wait for them */
    /* When all have finalized, proxies of other hosts may end, and nobody acknowledges anything any more. */
    quoit_team_quiet(quoit_job.world);
    quoit_span_leave(&span);
    quoit_virtual_leave();
    quoit_boot_finalized(&quoit_job.boot);
    quoit_crash_remove();
    quoit_job.state = QUOIT_JOB_FINALIZED;
    quoit_job.pe_count = 0;
    free(quoit_job.fast.reaches);
    free(quoit_job.counted.reaches);
    free(quoit_job.fast.contexts);
    quoit_job.fast = quoit_job.counted = (struct quoit_fast){0};
    quoit_job.regions.heap.bytes = 0;
    quoit_job.regions.data.bytes = 0;
    quoit_job.regions.other_count = 0;
    free(quoit_job.regions.others);
    quoit_job.regions.others = NULL;
    quoit_handles_end();
    quoit_sets_end();
    quoit_team_delete(quoit_job.world);
    quoit_heap_delete(quoit_job.allocator);
    quoit_fabric_close(quoit_job.fabric);
    quoit_job.fabric = NULL;
    quoit_audit_delete();
    /* The memory stays mapped: the program's variables are in it, and pointers into the heap may still be read. */
}

/* --- The routines (specification, sections 9.1 and 9.2) --- */

static void join(int thread_level)
{
    if (quoit_job.state == QUOIT_JOB_RUNNING) {
        quoit_job.init_count++;
        return;
    }
    if (quoit_job.state == QUOIT_JOB_FINALIZED)
        start_again(thread_level);
    else
        quoit_job_start(thread_level);
    struct quoit_profile *profile = quoit_job.fabric->self.profile;
    if (profile) /* once the clock is that of the calls: a virtual one begins here */
        quoit_profile_begin(profile, quoit_job.fabric->self.has_threads);
}

QUOIT_API(void, init, (void))
{
    join(SHMEM_THREAD_SINGLE);
}

QUOIT_API(int, init_thread, (int requested, int *provided))
{
    if (requested < SHMEM_THREAD_SINGLE || requested > SHMEM_THREAD_MULTIPLE)
        return -1;
    join(requested);
    QUOIT_JOB_ENTER("shmem_init_thread");
    quoit_check_private(provided, sizeof *provided, "provided", "shmem_init_thread");
    *provided = quoit_job.thread_level;
    return 0;
}

void start_pes(int npes)
{
    (void)npes;                               /* ignored, as the specification says */
    if (quoit_job.state != QUOIT_JOB_RUNNING) /* a second start_pes has no matching shmem_finalize */
        join(SHMEM_THREAD_SINGLE);
}

QUOIT_API(void, finalize, (void))
{
    QUOIT_JOB_ENTER("shmem_finalize");
    if (quoit_job.state == QUOIT_JOB_NEW)
        quoit_wrong_state("shmem_finalize");
    if (quoit_job.state != QUOIT_JOB_RUNNING || quoit_exit_has_begun(&quoit_job.boot))
        return;
    QUOIT_JOB_ENTER("shmem_finalize");
    if (--quoit_job.init_count == 0)
        quoit_job_finish(false);
    else
        pshmem_barrier_all(); /* as the specification requires of all but the last */
}

QUOIT_API(void, query_initialized, (int *initialized))
{
    *initialized = quoit_job.state == QUOIT_JOB_RUNNING;
}

QUOIT_API(void, global_exit, (int status))
{
    quoit_exit_job(&quoit_job.boot, status);
}
