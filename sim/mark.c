/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/mark.h"
#include "base/assert.h"
#include "sim/world.h"

#include <stdlib.h>

static struct sim_mark *mark_of(struct sim_marks *marks, uint64_t offset)
{
    for (uint32_t i = 0; i < marks->count; i++)
        if (marks->all[i].offset == offset)
            return &marks->all[i];
    marks->all = realloc(marks->all, (marks->count + 1) * sizeof *marks->all);
    quoit_assert(marks->all != NULL);
    marks->all[marks->count] = (struct sim_mark){.offset = offset};
    return &marks->all[marks->count++];
}

uint64_t sim_mark_post(struct sim_end *end, uint64_t mark_offset)
{
    return ++mark_of(&end->marks, mark_offset)->posted;
}

void sim_mark_land(struct sim_end *end, uint64_t mark_offset, uint64_t number)
{
    struct sim_mark *mark = mark_of(&end->marks, mark_offset);
    if (number <= mark->remade)
        sim_fail(end->world, "direct put %llu through end %u lands after it was made good by a request",
                 (unsigned long long)number, end->index);
    mark->landed = number;
}

void sim_mark_remake(struct sim_end *end, uint64_t mark_offset, uint64_t number)
{
    struct sim_mark *mark = mark_of(&end->marks, mark_offset);
    if (number <= mark->landed || number <= mark->remade || number > mark->posted)
        sim_fail(end->world,
                 "direct put %llu through end %u goes by a request, but %llu have landed and %llu went so, of %llu",
                 (unsigned long long)number, end->index, (unsigned long long)mark->landed,
                 (unsigned long long)mark->remade, (unsigned long long)mark->posted);
    mark->remade = number;
}

void sim_marks_free(struct sim_marks *marks)
{
    free(marks->all);
    *marks = (struct sim_marks){0};
}
