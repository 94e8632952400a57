/* SPDX-License-Identifier: BSD-3-Clause */
/* System calls that the filter stopped. */
#include "dsm/calls.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>

#include "dsm/call_memory.h"
#include "env/raw_call.h"

#define TRIES 8

static void touch_all(const struct quoit_dsm *dsm, const struct quoit_dsm_call *call, const uint64_t arguments[6],
                      unsigned pointers)
{
    for (int i = 0; i < 6; i++) {
        if (pointers >> i & 1)
            quoit_dsm_call_touch(dsm, arguments[i],
                                 call->kind == QUOIT_DSM_CALL_TOUCH_OUT || call->kind == QUOIT_DSM_CALL_OUT);
    }
}

/* The flags of a call on a socket. */
static uint64_t flags_of(long number, const uint64_t arguments[6])
{
    return number == SYS_sendto || number == SYS_recvfrom ? arguments[3] : 0;
}

static long serve_buffer(struct quoit_dsm *dsm, const struct quoit_dsm_call *call, const uint64_t arguments[6],
                         int cancel_type)
{
    bool is_in = call->kind == QUOIT_DSM_CALL_IN;
    uint64_t address = arguments[call->buffer], bytes = arguments[call->length], own[6];
    uint64_t flags = flags_of(call->number, arguments);
    bytes =
        quoit_dsm_shared_bytes(dsm, (const void *)address, bytes < QUOIT_DSM_MOVE_BYTES ? bytes : QUOIT_DSM_MOVE_BYTES);
    touch_all(dsm, call, arguments, call->pointers & ~(1u << call->buffer));
    if (!quoit_dsm_stand_in_needed(dsm, (const void *)address, bytes))
        return quoit_dsm_call_now(call->number, arguments, cancel_type);
    if (is_in && bytes > QUOIT_DSM_STREAM_BYTES && quoit_dsm_call_takes_part((int)arguments[0], flags))
        bytes = QUOIT_DSM_STREAM_BYTES;
    uint64_t at = quoit_dsm_stand_in_place(0, address, bytes), least = quoit_dsm_stand_in_least(flags);
    struct quoit_dsm_stand_in memory = quoit_dsm_stand_in_take(dsm, at + bytes > least ? at + bytes : least);
    if (!memory.start)
        return -ENOMEM;
    if (is_in)
        memcpy(memory.start + at, (const void *)address, bytes);
    memcpy(own, arguments, sizeof own);
    own[call->buffer] = (uintptr_t)memory.start + at;
    own[call->length] = bytes;
    long result = quoit_dsm_call_now(call->number, own, cancel_type);
    if (!is_in && result > 0)
        memcpy((void *)address, memory.start + at, (uint64_t)result < bytes ? (uint64_t)result : bytes);
    quoit_dsm_stand_in_end(dsm, memory);
    return result;
}

/* The pages are accessible when the call is made, unless another thread's acquire drops one meanwhile. */
static long serve_touched(struct quoit_dsm *dsm, const struct quoit_dsm_call *call, const uint64_t arguments[6],
                          int cancel_type)
{
    long result = -EFAULT;
    for (int i = 0; i < TRIES && result == -EFAULT; i++) {
        touch_all(dsm, call, arguments, call->pointers);
        result = quoit_dsm_call_now(call->number, arguments, cancel_type);
    }
    for (int i = 0; i < 6 && result == -EFAULT; i++) {
        if ((call->pointers >> i & 1) && quoit_dsm_shared_bytes(dsm, (const void *)arguments[i], 1) > 0)
            quoit_dsm_call_complain(dsm, call->number, call->name, (const void *)arguments[i]);
    }
    return result;
}

long quoit_dsm_call_serve(struct quoit_dsm *dsm, long number, const uint64_t arguments[6])
{
    const struct quoit_dsm_call *call = quoit_dsm_call_find(number);
    int cancel_type, unused;
    if (!dsm || !call)
        return quoit_raw_call(number, arguments);
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &cancel_type);
    bool is_buffer = call->kind == QUOIT_DSM_CALL_OUT || call->kind == QUOIT_DSM_CALL_IN;
    long result = (is_buffer ? serve_buffer : serve_touched)(dsm, call, arguments, cancel_type);
    pthread_setcanceltype(cancel_type, &unused);
    return result;
}
