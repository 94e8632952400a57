/* SPDX-License-Identifier: BSD-3-Clause */
/* status.h - the result of a call that can fail for reasons outside the program.
 *
 * A status must be used. The function that first detects the error logs it, once; callers pass it up.
 */
#ifndef QUOIT_BASE_STATUS_H
#define QUOIT_BASE_STATUS_H

#define QUOIT_STATUS_TABLE(X)                                                                                          \
    X(OK, "success")                                                                                                   \
    X(AGAIN, "nothing to do now, try again later")                                                                     \
    X(FULL, "no free slot or entry")                                                                                   \
    X(LINK_DOWN, "the link is down")                                                                                   \
    X(OUT_OF_RANGE, "address or size outside what was granted")                                                        \
    X(INVALID, "invalid argument or malformed data")                                                                   \
    X(NO_MEMORY, "out of memory")                                                                                      \
    X(UNSUPPORTED, "not supported here")                                                                               \
    X(TIMEOUT, "timed out")                                                                                            \
    X(GONE, "the other side has gone")                                                                                 \
    X(NO_THREAD, "no thread could be started (ulimit -u, or a control group's pids)")                                  \
    X(SYSTEM, "a system call failed")

enum quoit_status {
#define X(name, sentence) QUOIT_##name,
    QUOIT_STATUS_TABLE(X)
#undef X
};

#define QUOIT_MUST_USE __attribute__((warn_unused_result))

/* A sentence for messages. Static storage. */
const char *quoit_status_text(enum quoit_status status);

#endif
