/* SPDX-License-Identifier: BSD-3-Clause */
#include "shmem/wrong.h"
#include "boot/interpreter.h"
#include "env/clock.h"
#include "env/symbols.h"
#include "shmem/api.h"

#include <errno.h>
#include <inttypes.h>
#include <link.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUESS_BYTES  256
#define REASON_BYTES (QUOIT_BOOT_TEXT_BYTES - 128 - QUOIT_SOURCE_LINE_BYTES)

/* Where the program called the routine, relative to the load address; 0 if a library called it, or nothing was
 * recorded. */
static uint64_t called_from(const char *call)
{
    const char *entered = quoit_job.fabric ? quoit_job.fabric->self.call : quoit_job.outside_call;
    void *from = quoit_job.fabric ? quoit_job.fabric->self.call_from : quoit_job.outside_from;
    Dl_info info;
    struct link_map *object = NULL;
    if (!entered || strcmp(entered, call) != 0 || dladdr1(from, &info, (void **)&object, RTLD_DL_LINKMAP) == 0 ||
        !object || object->l_name[0])
        return 0;
    return (uintptr_t)from - object->l_addr;
}

/* "libx.so", or the program's name. */
static const char *object_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return !path[0] ? program_invocation_short_name : slash ? slash + 1 : path;
}

/* "PROGRAM+0x4010 (table + 8)", or "0x404010 (table + 8)" in a program at a fixed address. False: the address is no
 * object's, or of a thread's variable, of which no file has the address. */
static bool show_address(uintptr_t address, char text_out[GUESS_BYTES])
{
    char name[QUOIT_SYMBOL_TEXT_BYTES];
    const struct quoit_object object = quoit_data_segments_explain(&quoit_job.segments, (const void *)address);
    if (object.kind == QUOIT_OBJECT_NONE || object.kind == QUOIT_OBJECT_THREAD_LOCAL)
        return false;
    uint64_t in_file = address - object.load_base;
    int chars = snprintf(text_out, GUESS_BYTES, object.load_base ? "%.60s+0x%" PRIx64 : "%.0s0x%" PRIx64,
                         object_name(object.path), in_file);
    if (quoit_symbols_name(object.path[0] ? object.path : "/proc/self/exe", in_file, name))
        snprintf(text_out + chars, GUESS_BYTES - (size_t)chars, " (%s)", name);
    return true;
}

/* Variables are shown by name. In position-independent objects their addresses differ between PEs: they are shown as
 * PROGRAM+0x4010, as addr2line and nm know them, so that all PEs send the same text and the launcher folds it into one.
 */
static void name_variables(char text[REASON_BYTES])
{
    char named[REASON_BYTES], shown[GUESS_BYTES];
    size_t used = 0;
    for (const char *at = text; *at && used < sizeof named - 1;) {
        char *end = NULL;
        uintptr_t address = strncmp(at, "0x", 2) == 0 ? strtoull(at, &end, 16) : 0;
        if (end && show_address(address, shown)) {
            int n = snprintf(named + used, sizeof named - used, "%s", shown);
            used = used + (size_t)n < sizeof named ? used + (size_t)n : sizeof named - 1;
            at = end;
        } else {
            named[used++] = *at++;
        }
    }
    named[used] = '\0';
    memcpy(text, named, used + 1);
}

static void compose(char text[QUOIT_BOOT_TEXT_BYTES], enum quoit_wrong code, const char *call, const char *format,
                    va_list args)
{
    char reason[REASON_BYTES], line[QUOIT_SOURCE_LINE_BYTES];
    vsnprintf(reason, sizeof reason, format, args);
    name_variables(reason);
    bool has_line =
        called_from(call) == 0 && quoit_interpreter_line(quoit_clock_now_ns() + QUOIT_INTERPRETER_LIMIT_NS, line);
    snprintf(text, QUOIT_BOOT_TEXT_BYTES, has_line ? "%s: %s (called at %s) [Q%04d]" : "%s: %s%s [Q%04d]", call, reason,
             has_line ? line : "", (int)code);
}

void quoit_wrong(enum quoit_wrong code, const char *call, const char *format, ...)
{
    char text[QUOIT_BOOT_TEXT_BYTES];
    va_list args;
    va_start(args, format);
    compose(text, code, call, format, args);
    va_end(args);
    struct quoit_boot alone = {.socket_fd = -1};
    quoit_boot_abort_from(quoit_job.state == QUOIT_JOB_NEW ? &alone : &quoit_job.boot, 1, text, called_from(call));
}

void quoit_warn(enum quoit_wrong code, const char *call, const char *format, ...)
{
    char text[QUOIT_BOOT_TEXT_BYTES];
    const uint64_t bit = 1ull << (code - QUOIT_WRONG_BEFORE_INIT);
    va_list args;
    if (quoit_job.pe != 0 || (quoit_job.warned & bit))
        return;
    quoit_job.warned |= bit;
    va_start(args, format);
    compose(text, code, call, format, args);
    va_end(args);
    quoit_boot_warn(text, called_from(call));
}

void quoit_wrong_state(const char *call)
{
    if (quoit_job.state == QUOIT_JOB_FINALIZED)
        quoit_wrong(QUOIT_WRONG_AFTER_FINALIZE, call,
                    "called after shmem_finalize; nothing of OpenSHMEM but shmem_init is allowed then");
    quoit_wrong(QUOIT_WRONG_BEFORE_INIT, call, "called before shmem_init; call shmem_init first in main");
}

void quoit_wrong_pe(const char *call, const char *argument, int pe, unsigned pe_count, const char *of_what)
{
    if (pe_count == 1)
        quoit_wrong(QUOIT_WRONG_PE, call, "%s is %d, but %s has 1 PE (0)", argument, pe, of_what);
    quoit_wrong(QUOIT_WRONG_PE, call, "%s is %d, but %s has %u PEs (0..%u)", argument, pe, of_what, pe_count,
                pe_count - 1);
}

void quoit_wrong_overlap(const char *call, const void *dest, size_t dest_bytes, const void *source, size_t source_bytes,
                         int may_be_same)
{
    quoit_wrong(QUOIT_WRONG_OVERLAP, call,
                "dest %p with %zu bytes and source %p with %zu bytes overlap, but must be %s", dest, dest_bytes, source,
                source_bytes, may_be_same ? "the same or lie apart" : "different objects");
}

/* The name of what is mapped at `address`, "" for anonymous memory. False if nothing is mapped there. */
static bool find_mapping(uintptr_t address, char *name_out, size_t name_bytes)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512];
    bool is_found = false;
    while (maps && !is_found && fgets(line, sizeof line, maps)) {
        uintptr_t start, end;
        char path[GUESS_BYTES] = "";
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %*s %255s", &start, &end, path) < 2)
            continue;
        is_found = address >= start && address < end;
        if (is_found)
            snprintf(name_out, name_bytes, "%s", path);
    }
    if (maps)
        fclose(maps);
    return is_found;
}

/* What is certain of a non-symmetric address in the program or in a library. False: it is in neither. */
static bool explain(const void *address, char *text_out)
{
    static const char *const reasons[] = {
        [QUOIT_LIBRARIES_HAVE_THREADS] = "because the process had several threads at shmem_init, which may have been "
                                         "using it; start threads after shmem_init",
        [QUOIT_LIBRARIES_UNKNOWN] = "because /proc/self/task cannot be read, so the process may have several threads"};
    const struct quoit_object object = quoit_data_segments_explain(&quoit_job.segments, address);
    const enum quoit_object_kind kind = object.kind;
    const char *name = object_name(object.path);
    if (kind == QUOIT_OBJECT_READ_ONLY)
        snprintf(text_out, GUESS_BYTES,
                 object.path[0] ? "a constant or code of the shared library %.120s"
                                : "a constant or code of the program",
                 name);
    else if (kind == QUOIT_OBJECT_THREAD_LOCAL)
        snprintf(text_out, GUESS_BYTES, "a thread-local variable; each thread of a PE has its own");
    else if (kind == QUOIT_OBJECT_RUNTIME)
        snprintf(text_out, GUESS_BYTES, "a variable of the shared library %.120s, which stays private to each process",
                 name);
    else if (kind == QUOIT_OBJECT_LEFT_OUT)
        snprintf(text_out, GUESS_BYTES, "a variable of the shared library %.60s, left out %s", name,
                 reasons[quoit_job.segments.libraries]);
    else if (kind == QUOIT_OBJECT_LATE)
        snprintf(text_out, GUESS_BYTES,
                 "a variable of the shared library %.60s, which was loaded after shmem_init; load it before, or link "
                 "with it",
                 name);
    return kind != QUOIT_OBJECT_NONE && kind != QUOIT_OBJECT_SHARED;
}

/* Says what a non-symmetric address is, as far as can be known. Addresses near this call's frame are on the thread's
 * stack. */
static void guess(const void *address, char *guess_out)
{
    if (explain(address, guess_out))
        return;
    uintptr_t at = (uintptr_t)address;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    char name[GUESS_BYTES];
    if (!find_mapping(at, name, sizeof name))
        snprintf(guess_out, GUESS_BYTES, "nothing is mapped there; a wild pointer?");
    else if (strncmp(name, "[stack", 6) == 0 || (at > here && at - here < (8u << 20) && name[0] == '\0'))
        snprintf(guess_out, GUESS_BYTES, "a stack variable?");
    else if (strcmp(name, "[heap]") == 0 || name[0] == '\0')
        snprintf(guess_out, GUESS_BYTES, "memory from malloc? shmem_malloc gives symmetric memory");
    else
        snprintf(guess_out, GUESS_BYTES, "it lies in %.160s", name);
}

/* Describes the block nearest to an offset of the heap. */
static void describe_block(uint64_t offset, char *text_out)
{
    uint64_t start, bytes;
    if (quoit_heap_find(quoit_job.allocator, offset, &start, &bytes))
        snprintf(text_out, GUESS_BYTES, "it is %" PRIu64 " bytes into a block of %" PRIu64 " bytes", offset - start,
                 bytes);
    else
        snprintf(text_out, GUESS_BYTES, "it is in no block that shmem_malloc gave");
}

void quoit_wrong_address(const char *call, const char *argument, const void *address, size_t bytes)
{
    char what[GUESS_BYTES];
    uint64_t in_heap = (uintptr_t)address - quoit_job.regions.heap.base;
    const struct quoit_region *variables = quoit_regions_variables(&quoit_job.regions, address);
    uint64_t limit = quoit_job.boot.layout.job.heap_bytes;
    if (!address)
        quoit_wrong(QUOIT_WRONG_NULL, call, "%s is NULL, but a symmetric address is needed", argument);
    if (in_heap < quoit_job.regions.heap.bytes) {
        describe_block(in_heap, what);
        quoit_wrong(QUOIT_WRONG_ADDRESS, call,
                    "%s %p with %zu bytes ends %" PRIu64 " bytes past the end of the symmetric heap; %s", argument,
                    address, bytes, (uint64_t)bytes - (quoit_job.regions.heap.bytes - in_heap), what);
    }
    if (in_heap < limit)
        quoit_wrong(QUOIT_WRONG_ADDRESS, call,
                    "%s %p lies %" PRIu64 " bytes past the end of the symmetric heap, of which %" PRIu64
                    " bytes are in use",
                    argument, address, in_heap - quoit_heap_used_bytes(quoit_job.allocator),
                    quoit_heap_used_bytes(quoit_job.allocator));
    if (variables) {
        const char *path = quoit_data_segments_at(&quoit_job.segments, address)->path;
        quoit_wrong(QUOIT_WRONG_ADDRESS, call,
                    "%s %p with %zu bytes ends %" PRIu64 " bytes past the end of %s's global variables", argument,
                    address, bytes, (uint64_t)bytes - (variables->bytes - ((uintptr_t)address - variables->base)),
                    path[0] ? object_name(path) : "the program");
    }
    guess(address, what);
    quoit_wrong(QUOIT_WRONG_ADDRESS, call, "%s %p is not a symmetric address (%s)", argument, address, what);
}
