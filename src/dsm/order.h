/* SPDX-License-Identifier: BSD-3-Clause */
/* order.h - what ThreadSanitizer cannot see of a PE's threads; nothing without it.
 *
 * It knows of one process only. A thread and the handler of a PE may be ordered by a message of another process:
 * before() precedes what makes that process send it, after() follows its arrival. Content: pages that the handler sends
 * while threads work in them, as the protocol allows: what nothing orders, the receiver must not rely on. */
#ifndef QUOIT_DSM_ORDER_H
#define QUOIT_DSM_ORDER_H

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
extern void AnnotateIgnoreReadsBegin(const char *file, int line);
extern void AnnotateIgnoreReadsEnd(const char *file, int line);
extern void AnnotateIgnoreWritesBegin(const char *file, int line);
extern void AnnotateIgnoreWritesEnd(const char *file, int line);

static inline void quoit_dsm_order_before(void *message)
{
    __tsan_release(message);
}

static inline void quoit_dsm_order_after(void *message)
{
    __tsan_acquire(message);
}

static inline void quoit_dsm_content_begin(void)
{
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}

static inline void quoit_dsm_content_end(void)
{
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}
#else
static inline void quoit_dsm_order_before(void *message)
{
    (void)message;
}

static inline void quoit_dsm_order_after(void *message)
{
    (void)message;
}

static inline void quoit_dsm_content_begin(void)
{
}

static inline void quoit_dsm_content_end(void)
{
}
#endif

#endif
