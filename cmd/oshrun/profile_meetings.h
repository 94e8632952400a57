/* SPDX-License-Identifier: BSD-3-Clause */
/* profile_meetings.h - the collectives that all members have recorded: who came last, and how long the others waited
 * for it. */
#ifndef OSHRUN_PROFILE_MEETINGS_H
#define OSHRUN_PROFILE_MEETINGS_H

#include "profile_rows.h"

/* Of a table that profile_make() made: compares the clocks of the machines, then fills in last_count, held_ns and
 * compared_count. False: out of memory. */
bool profile_meet(struct profile_table *table);

#endif
