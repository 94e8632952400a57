/* SPDX-License-Identifier: BSD-3-Clause */
/* observe.h - the simulator's observers, for the points of base/observer.h with the same names. */
#ifndef SIM_OBSERVE_H
#define SIM_OBSERVE_H

#include "base/observer.h"

extern const struct quoit_observer sim_observer;

/* cost.c */
void sim_request_submitted(struct quoit_ring_engine *ring, struct quoit_slot *slot);
void sim_request_taken(struct quoit_lane *lane);
void sim_frame_executing(struct quoit_lane *lane, const struct quoit_verdict *verdict, const char *payload);
void sim_frame_executed(struct quoit_lane *lane, const struct quoit_verdict *verdict, const char *payload);
void sim_request_completing(struct quoit_lane *lane, uint64_t cookie);
void sim_flag_seen(const void *flag);
void sim_copied(size_t bytes);

/* watch.c */
void sim_put_remade(struct quoit_ring_engine *ring, int side, uint64_t sequence);
void sim_log_line(int level, const char *text);
void sim_assertion(const char *condition, const char *file, int line);
void sim_frame_received(struct quoit_lane *lane, struct quoit_frame *frame);
void sim_frame_taken(struct quoit_lane *lane, int side, int class, const struct quoit_frame *frame, int status,
                     const struct quoit_verdict *verdict);
void sim_frame_sending(struct quoit_lane *lane, const struct quoit_verdict *verdict);
void sim_payload_leaving(struct quoit_lane *lane, const struct quoit_departure *departure);
void sim_payload_left(struct quoit_lane *lane, const struct quoit_departure *departure, int status);
void sim_link_followed(struct quoit_lane *lane, int side);
void sim_link_moved(const struct quoit_link_record *record, int state);

#endif
