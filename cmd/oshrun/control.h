/* SPDX-License-Identifier: BSD-3-Clause */
/* control.h - the control channel of oshrun with its agent on another host, over two descriptors that a remote shell
 * joins.
 *
 * Each side first writes a line: "quoit-agent KEY VERSION PATH\n", with its version
 * (quoit_version_write) and its file. oshrun chooses the key by chance and sends it through the
 * agent's standard input, never on a command line; what the remote shell or a login script prints before the agent's
 * line is skipped. After the line come frames (boot/control.h): the struct, then its bytes.
 *
 * An agent may have started further ones (tree.h). It passes frames for them on, and those that they send oshrun. A
 * frame's host says whose it is; what all are to receive is sent once, to QUOIT_CONTROL_TO_ALL. Key, line, SETUP and
 * PING are of two neighbours in the tree.
 *
 * Promises: control_send never blocks; what is sent arrives in order, or the other side is lost. A side from which
 * nothing comes for quoit_net_notice_ns() of the limit is silent, and waited for: until neither it nor, by another way,
 * its machine has given a sign for the limit, or it alone for CONTROL_ALIVE_LIMITS of them. Then it is lost; GIVES_UP
 * reports that to it. Ends: the agent that loses oshrun ends its PEs; oshrun that loses an agent ends the job.
 *
 * Trust: what comes is of the other side's version of Quoit, which the first line has; lengths and numbers are
 * checked all the same.
 * Threads: one.
 */
#ifndef OSHRUN_CONTROL_H
#define OSHRUN_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "boot/control.h"
#include "buffer.h"
#include "loop.h"

#define CONTROL_KEY_BYTES    16
#define CONTROL_FRAME_MAX    (20u << 20)
#define CONTROL_WINDOW_BYTES (256u << 10) /* of output, and of input, that is not TAKEN yet */
#define CONTROL_NO_PE        UINT32_MAX
#define CONTROL_ALIVE_LIMITS 5u
/* One whose line does not come for start_limit_ns is late, and lost after so many of them. */
#define CONTROL_START_LIMITS 6u
/* In the place of the PE of a SIGNAL, whose bytes are an int32_t. */
#define CONTROL_TO_GROUPS     0u
#define CONTROL_TO_PROGRAMS   1u
#define CONTROL_TO_PROXY      2u
#define CONTROL_TO_OTHERS     3u /* groups of PEs that are not in shmem_global_exit */
#define CONTROL_TO_LOST_PROXY 4u /* which another host has lost */
#define CONTROL_PROBLEM_BYTES 1024

struct control {
    struct loop *loop;
    struct watch in;
    struct watch out;
    struct buffer incoming;
    struct buffer outgoing;
    uint64_t opened_ns;
    uint64_t received_ns;
    uint64_t sent_ns;        /* of the monotonic clock: pings are sent while the job is stopped, too */
    uint64_t alive_ns;       /* when the other side's machine last gave a sign by another way, as the owner knows */
    uint64_t limit_ns;       /* of silence */
    uint64_t start_limit_ns; /* until the other side's line */
    char greeting[64];       /* the line that the other side writes, up to its version */
    bool is_greeted;
    bool is_late; /* its line has not come within start_limit_ns */
    bool is_silent;
    bool is_lost;
    char problem[CONTROL_PROBLEM_BYTES]; /* why it is lost */
    /* A frame; its bytes are 8-byte aligned, and valid during the call. */
    void (*on_frame)(struct control *control, const struct quoit_control_frame *frame, const void *bytes);
    void (*on_lost)(struct control *control); /* called once */
    void *owner;
    uint32_t host; /* of the frames that control_send makes */
};

/* The number that is all the frame holds; 0: it holds something else. */
int32_t control_number(const struct quoit_control_frame *frame, const void *bytes);
/* Fills the key with chance. */
bool control_make_key(unsigned char key_out[CONTROL_KEY_BYTES]);
/* Takes over both descriptors, which may be pipes or sockets. Says the line. False, with errno: they cannot be waited
 * for. */
bool control_open(struct control *control, struct loop *loop, int in_fd, int out_fd,
                  const unsigned char key[CONTROL_KEY_BYTES]);
/* The agent's side, before it has a loop: reads the line and the first frame from in_fd, blocking. The frame's bytes
 * are malloc'd. False: problem_out, which is "" after another version of oshrun was answered on out_fd. */
bool control_receive_first(int in_fd, int out_fd, unsigned char key_out[CONTROL_KEY_BYTES],
                           struct quoit_control_frame *frame_out, char **bytes_out,
                           char problem_out[CONTROL_PROBLEM_BYTES]);
/* The agent's side of control_open, after control_receive_first. */
bool control_answer(struct control *control, struct loop *loop, int in_fd, int out_fd,
                    const unsigned char key[CONTROL_KEY_BYTES]);
void control_send(struct control *control, enum quoit_control_kind kind, uint32_t pe, const void *bytes, size_t count);
/* The same for a frame as it came, or as the caller has made it. */
void control_pass(struct control *control, const struct quoit_control_frame *frame, const void *bytes);
/* Writes what can be written, pings, and looks for silence, which it leaves in is_silent. Returns when to call again at
 * the latest. */
uint64_t control_step(struct control *control, uint64_t now_ns);
/* Writes all that was sent, for `limit_ns` at most. */
void control_flush(struct control *control, uint64_t limit_ns);
void control_close(struct control *control);

#endif
