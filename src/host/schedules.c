/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/schedules.h"

#include <stdio.h>
#include <string.h>

_Static_assert(2 * QUOIT_COLLECTIVE_COUNT * QUOIT_SCHEDULE_SIZES + 2 <= 64, "entries and source have room in a word");
_Static_assert(QUOIT_SCHEDULE_COUNT <= 4, "a schedule has two bits");

static const char *const collectives[QUOIT_COLLECTIVE_COUNT] = {"broadcast", "reduce", "exchange"};
static const char *const schedules_of[QUOIT_COLLECTIVE_COUNT][QUOIT_SCHEDULE_COUNT] = {
    {"rule", "around", "tree", NULL},
    {"rule", "around", "halving", "at-once"},
    {"rule", "around", "dissemination", NULL},
};

const char *quoit_collective_name(enum quoit_collective collective)
{
    return collectives[collective];
}

const char *quoit_schedule_name(enum quoit_collective collective, enum quoit_schedule schedule)
{
    return schedules_of[collective][schedule];
}

enum quoit_schedule quoit_schedule_named(enum quoit_collective collective, const char *name, size_t length)
{
    enum quoit_schedule schedule = QUOIT_SCHEDULE_RULE;
    for (; schedule < QUOIT_SCHEDULE_COUNT; schedule++) {
        const char *own = schedules_of[collective][schedule];
        if (own && strlen(own) == length && strncmp(own, name, length) == 0)
            break;
    }
    return schedule;
}

static enum quoit_collective collective_named(const char *name, size_t length)
{
    enum quoit_collective collective = QUOIT_COLLECTIVE_BROADCAST;
    while (collective < QUOIT_COLLECTIVE_COUNT &&
           (strlen(collectives[collective]) != length || strncmp(collectives[collective], name, length) != 0))
        collective++;
    return collective;
}

bool quoit_schedules_force(const char *text, uint64_t *schedules_out, char problem_out[QUOIT_SCHEDULES_PROBLEM_BYTES])
{
    uint64_t made = 0;
    bool is_given[QUOIT_COLLECTIVE_COUNT] = {false};
    for (const char *at = strcmp(text, "rule") == 0 ? NULL : text; at;) {
        size_t name_bytes = strcspn(at, ":,"), bytes = strcspn(at, ",");
        enum quoit_collective collective = collective_named(at, name_bytes);
        enum quoit_schedule schedule = QUOIT_SCHEDULE_COUNT;
        if (collective < QUOIT_COLLECTIVE_COUNT && !is_given[collective] && at[name_bytes] == ':')
            schedule = quoit_schedule_named(collective, at + name_bytes + 1, bytes - name_bytes - 1);
        if (schedule == QUOIT_SCHEDULE_COUNT) {
            snprintf(problem_out, QUOIT_SCHEDULES_PROBLEM_BYTES,
                     "\"%.*s\" is not broadcast:around|tree, reduce:around|halving|at-once or "
                     "exchange:around|dissemination, each once",
                     bytes < 40 ? (int)bytes : 40, at);
            return false;
        }
        is_given[collective] = true;
        for (uint32_t index = 0; index < QUOIT_SCHEDULE_SIZES; index++)
            made = quoit_schedules_with(made, collective, index, schedule);
        at = at[bytes] ? at + bytes + 1 : NULL;
    }
    *schedules_out = quoit_schedules_from(made, QUOIT_SCHEDULES_FORCED);
    return true;
}
