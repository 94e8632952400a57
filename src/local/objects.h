/* SPDX-License-Identifier: BSD-3-Clause */
/* objects.h - where the global and static variables of the program and of its libraries are in this process.
 *
 * What it is: a segment for each part of a writable PT_LOAD that the loader has left writable (.data and .bss, without
 * relro), in whole pages. Linkers leave holes between the PT_LOADs of an object, for alignment or for another code
 * model; what lies in a hole is not the object's, so it is in no segment.
 *
 * Excluded: the C runtime, sanitizers and allocators, whose variables belong to the process (a forked child changes
 * them before any handler can run), and this library. If the process already has several threads, all libraries are,
 * because their threads may be using the variables.
 *
 * A library with a segment stays loaded until the process ends, also after dlclose: other PEs reach its variables at
 * any time.
 *
 * Threads: find() while no other thread loads or unloads libraries; explain() by any thread.
 */
#ifndef QUOIT_LOCAL_OBJECTS_H
#define QUOIT_LOCAL_OBJECTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct quoit_data_segment {
    char *base;
    uint64_t bytes;     /* whole pages */
    uint64_t zero_at;   /* from here on pages are zero until touched: the end of .bss */
    uint64_t load_base; /* where the loader put the object; for addresses in messages */
    int protection;     /* as of mmap */
    const char *path;   /* of the library, owned by the loader; "": the program */
};

/* What find() left out, and why. */
enum quoit_library_use { QUOIT_LIBRARIES_SHARED, QUOIT_LIBRARIES_HAVE_THREADS, QUOIT_LIBRARIES_UNKNOWN /* no /proc */ };

struct quoit_data_segments {
    /* The program's, then those of libraries in load order, the same in each process of a program; of one object in
     * order of address. Allocated once, and kept until the process ends. */
    struct quoit_data_segment *list;
    uint32_t count;
    uint32_t program_count; /* the first ones, of the program */
    enum quoit_library_use libraries;
    uint64_t bytes;     /* of all segments */
    uint64_t load_base; /* of the program */
};

QUOIT_MUST_USE enum quoit_status quoit_data_segments_find(struct quoit_data_segments *segments_out);

/* The program's largest segment; NULL: it has no variables. */
const struct quoit_data_segment *quoit_data_segments_main(const struct quoit_data_segments *segments);
/* The segment that contains an address; NULL: none does. */
const struct quoit_data_segment *quoit_data_segments_at(const struct quoit_data_segments *segments,
                                                        const void *address);

enum quoit_object_kind {
    QUOIT_OBJECT_NONE,         /* in no object */
    QUOIT_OBJECT_READ_ONLY,    /* code, constants, or what the loader has made read-only */
    QUOIT_OBJECT_THREAD_LOCAL, /* of the calling thread */
    QUOIT_OBJECT_SHARED,       /* in a segment */
    QUOIT_OBJECT_RUNTIME,      /* a variable of an object whose variables belong to the process */
    QUOIT_OBJECT_LEFT_OUT,     /* a variable of a library, left out because of segments->libraries */
    QUOIT_OBJECT_LATE,         /* a variable of a library that was loaded after find() */
};

struct quoit_object {
    enum quoit_object_kind kind;
    const char *path;   /* of the library, owned by the loader; "": the program, or none */
    uint64_t load_base; /* where the loader put it */
};

/* What an address is; for messages. */
struct quoit_object quoit_data_segments_explain(const struct quoit_data_segments *segments, const void *address);

#endif
