/* SPDX-License-Identifier: BSD-3-Clause */
#include "shmem/span.h"

#include <dlfcn.h>
#include <link.h>
#include <shmemx.h>

enum begun { BEGUN_INSIDE = 1, BEGUN_OUTERMOST };

struct quoit_span quoit_span_enter(const char *call, uint64_t bytes, uint32_t pe)
{
    struct quoit_span span = {.is_watched = true};
    if (!quoit_job.fabric)
        return (struct quoit_span){0}; /* before shmem_init, or after shmem_finalize: the checks that follow report it
                                        */
    const struct quoit_self *self = &quoit_job.fabric->self;
    if (quoit_job.audit)
        span.audit = quoit_audit_enter(call);
    span.trace = self->trace;
    if (span.trace)
        span.begin_ns = quoit_trace_enter(span.trace, call, bytes, pe);
    span.profile = self->profile;
    if (span.profile)
        span.is_outermost =
            quoit_profile_enter(span.profile, call, __atomic_load_n(&self->call_from, __ATOMIC_RELAXED), bytes);
    return span;
}

/* The file that a call came from, and where in it. */
static void place(struct quoit_profile *profile, struct quoit_profile_site *site)
{
    Dl_info info;
    struct link_map *object = NULL;
    if (quoit_profile_is_line(site->from)) {
        site->object = quoit_profile_file_of(site->from);
        return;
    }
    if (site->from == 0 || dladdr1((void *)site->from, &info, (void **)&object, RTLD_DL_LINKMAP) == 0)
        return;
    site->address = site->from - object->l_addr;
    site->object = object->l_name[0] ? quoit_profile_object(profile, object->l_name) : 0;
}

void quoit_span_end(struct quoit_span *span)
{
    if (span->profile)
        quoit_profile_leave(span->profile, quoit_job.pe_count, span->is_outermost, place);
    if (span->audit)
        quoit_audit_leave(span->audit);
    if (span->trace)
        quoit_trace_leave(span->trace, span->begin_ns, 0);
}

void quoit_span_world(const struct quoit_span *span, uint64_t bytes)
{
    const struct quoit_team_range world = {.start = 0, .stride = 1, .size = quoit_job.pe_count};
    quoit_span_group(span, &world, bytes);
}

static struct quoit_profile *own_profile(void)
{
    return quoit_job.fabric ? quoit_job.fabric->self.profile : NULL;
}

int shmemx_profiled(void)
{
    return own_profile() != NULL;
}

int shmemx_profile_file(const char *path)
{
    return own_profile() ? (int)quoit_profile_file(own_profile(), path) : 0;
}

void shmemx_profile_line(int file, int line)
{
    quoit_profile_set_line((uint32_t)file, line > 0 ? (uint32_t)line : 0);
}

uint64_t shmemx_profile_begin(const char *routine, const void *from)
{
    struct quoit_profile *profile = own_profile();
    if (!profile)
        return 0;
    if (!quoit_profile_enter(profile, routine, from, 0))
        return BEGUN_INSIDE;
    quoit_profile_note_group(0, 1, 0, 0); /* timed each, as collectives are */
    return BEGUN_OUTERMOST;
}

void shmemx_profile_end(uint64_t begun, size_t bytes, int is_of_all)
{
    struct quoit_profile *profile = own_profile();
    bool is_counted = profile && begun == BEGUN_OUTERMOST; /* not if shmem_finalize came between */
    if (begun == 0)
        return;
    if (is_counted)
        quoit_profile_note_group(0, 1, is_of_all ? quoit_job.pe_count : 0, bytes);
    quoit_profile_leave(profile, quoit_job.pe_count, is_counted, place);
}
