/* SPDX-License-Identifier: BSD-3-Clause */
/* tree.h - the agents of the machines that are below this one in the tree of a job: oshrun at its root, the agents of
 * plan->machines below. Each process starts the agents next below it by a remote shell, and reaches the others through
 * them. What was not started, or was lost, is gone, with all that is below it. */
#ifndef OSHRUN_TREE_H
#define OSHRUN_TREE_H

#include "job.h"

/* What comes from below. The owner of the control channel is the host whose agent was started here; the frame names its
 * own. */
struct tree_callbacks {
    void (*on_frame)(struct control *control, const struct quoit_control_frame *frame, const void *bytes);
    void (*on_lost)(struct control *control);
};

/* Starts the agents next below, which start the others. False: reported; those that were not started are gone. */
bool tree_start(struct job *job, const struct tree_callbacks *callbacks);
/* Why a host is lost, as the process says that started its agent. */
struct tree_lost {
    int32_t has_answered;
    char problem[CONTROL_PROBLEM_BYTES];
};
void tree_describe_loss(const struct host *host, struct tree_lost *lost_out);
/* Whether `host` is `top`, or below it. */
bool tree_is_under(const struct job *job, uint32_t host, uint32_t top);
/* Marks a host and all below it as gone. */
void tree_mark_gone(struct job *job, uint32_t top);
/* Ends the conversations, and with them what is below. */
void tree_drop(struct job *job);
/* Returns when to call again at the latest. A job that is ended does not wait for silent agents as long as one that
 * is to go on. */
uint64_t tree_step(struct job *job, uint64_t now_ns);

#endif
