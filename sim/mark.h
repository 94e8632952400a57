/* SPDX-License-Identifier: BSD-3-Clause */
/* mark.h - checks that direct puts over posted writes arrive exactly once, with knowledge of both ends of a link.
 *
 * A PE numbers its puts through an end from 1 on, and each has one marked write. The simulator counts them
 * independently of the marks: a put that has landed must not be sent again by a request, none is sent again twice, and
 * a put sent again must not land later. Each violation fails the run at once.
 */
#ifndef SIM_MARK_H
#define SIM_MARK_H

#include <stdint.h>

struct sim_end;

/* Puts of one PE through one end. */
struct sim_mark {
    uint64_t offset; /* offset of its mark in the window, which identifies it */
    uint64_t posted; /* numbers of the last ones */
    uint64_t landed;
    uint64_t remade;
};

struct sim_marks {
    struct sim_mark *all;
    uint32_t count;
};

/* The number of the put whose marked write is being issued. */
uint64_t sim_mark_post(struct sim_end *end, uint64_t mark_offset);
void sim_mark_land(struct sim_end *end, uint64_t mark_offset, uint64_t number);
void sim_mark_remake(struct sim_end *end, uint64_t mark_offset, uint64_t number);
void sim_marks_free(struct sim_marks *marks);

#endif
