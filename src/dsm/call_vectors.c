/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of the C library whose buffers are named by a vector in memory, where the filter of system calls cannot
 * look: programs that are linked with libqdsm call these in place of the C library's. With private buffers, and while
 * the library does not run, they make the call and nothing else. Their declarations are the C library's. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "dsm/call_memory.h"

#define PARTS_MAX 1024 /* UIO_MAXIOV: the kernel takes no more buffers */
#define EXPORT    __attribute__((visibility("default")))

/* A part of a vector: where the program has it, and its place in the stand-in; NULL: it is private. */
struct part {
    char *shared;
    uint64_t place;
};

/* The vector that the kernel gets. */
struct vector {
    struct quoit_dsm_stand_in tables, memory; /* memory: taken if the parts have no room behind the tables */
    char *places;                             /* of the shared parts */
    struct iovec *buffers;
    struct part *parts;
    size_t count;
};

/* A call with a vector. */
struct request {
    long number;
    const char *name;
    bool is_in;
    int fd;
    uint64_t flags;
};

/* The first buffer of a vector that is shared; NULL: none. */
static const void *find_shared(const struct quoit_dsm *dsm, const struct iovec *buffers, size_t count)
{
    for (size_t i = 0; buffers && i < count && i < PARTS_MAX; i++) {
        if (quoit_dsm_shared_bytes(dsm, buffers[i].iov_base, buffers[i].iov_len) > 0)
            return buffers[i].iov_base;
    }
    return NULL;
}

/* Finds the shared parts, and cuts the vector where the kernel would: at the end of shared memory, and at the most that
 * a call moves. Returns how many bytes the stand-in of the shared parts needs; 0: there are none. */
static uint64_t vector_measure(struct quoit_dsm *dsm, struct vector *vector, uint64_t most)
{
    uint64_t total = 0, at = 0;
    for (size_t i = 0; i < vector->count; i++) {
        struct iovec *buffer = &vector->buffers[i];
        uint64_t wanted = buffer->iov_len, bytes = wanted < most - total ? wanted : most - total;
        vector->parts[i] = (struct part){NULL, 0};
        if (quoit_dsm_stand_in_needed(dsm, buffer->iov_base, bytes)) {
            bytes = quoit_dsm_shared_bytes(dsm, buffer->iov_base, bytes);
            vector->parts[i] =
                (struct part){buffer->iov_base, quoit_dsm_stand_in_place(at, (uintptr_t)buffer->iov_base, bytes)};
            at = vector->parts[i].place + bytes;
        }
        buffer->iov_len = bytes;
        total += bytes;
        if (bytes < wanted)
            vector->count = i + 1;
    }
    return at;
}

/* Takes the stand-in. No places afterwards: there is no memory. */
static void vector_place(struct quoit_dsm *dsm, struct vector *vector, uint64_t bytes, uint64_t least)
{
    uint64_t at = quoit_dsm_stand_in_place((uint64_t)((char *)(vector->parts + vector->count) - vector->tables.start),
                                           0, QUOIT_DSM_STAND_IN_PAGE);
    vector->places = vector->tables.start + at;
    if (bytes > QUOIT_DSM_SPARE_BYTES - at || least > 0) {
        vector->memory = quoit_dsm_stand_in_take(dsm, bytes > least ? bytes : least);
        vector->places = vector->memory.start;
    }
}

/* Puts the stand-in into the vector, with the content if the call reads it. */
static void vector_fill(struct vector *vector, bool is_in)
{
    for (size_t i = 0; i < vector->count; i++) {
        struct part part = vector->parts[i];
        if (!part.shared)
            continue;
        if (is_in)
            memcpy(vector->places + part.place, part.shared, vector->buffers[i].iov_len);
        vector->buffers[i].iov_base = vector->places + part.place;
    }
}

/* Stores what the call put into the stand-in. */
static void vector_store(const struct vector *vector, uint64_t left)
{
    for (size_t i = 0; i < vector->count && left > 0; i++) {
        struct part part = vector->parts[i];
        uint64_t bytes = vector->buffers[i].iov_len < left ? vector->buffers[i].iov_len : left;
        if (part.shared)
            memcpy(part.shared, vector->places + part.place, bytes);
        left -= bytes;
    }
}

static bool vector_is_right(const struct vector *vector)
{
    for (size_t i = 0; i < vector->count; i++) {
        if (vector->buffers[i].iov_len > SSIZE_MAX)
            return false;
    }
    return true;
}

/* Copies the program's vector and gives its shared parts a stand-in. False, with nothing taken: the call is to be made
 * as it is, because nothing is shared or because it is wrong. */
static bool vector_open(struct quoit_dsm *dsm, struct vector *vector, const struct iovec *theirs, size_t count,
                        const struct request *request)
{
    bool is_shared = quoit_dsm_shared_bytes(dsm, theirs, 1) > 0;
    if (count > PARTS_MAX || (!is_shared && !find_shared(dsm, theirs, count)))
        return false;
    *vector = (struct vector){.tables = quoit_dsm_stand_in_take(dsm, QUOIT_DSM_SPARE_BYTES), .count = count};
    if (!vector->tables.start)
        return false;
    vector->buffers = (struct iovec *)(void *)vector->tables.start;
    vector->parts = (struct part *)(void *)(vector->buffers + count);
    memcpy(vector->buffers, theirs, count * sizeof *theirs);
    bool is_right = vector_is_right(vector);
    uint64_t bytes = is_right ? vector_measure(dsm, vector, QUOIT_DSM_MOVE_BYTES) : 0;
    if (request->is_in && bytes > QUOIT_DSM_STREAM_BYTES && quoit_dsm_call_takes_part(request->fd, request->flags))
        bytes = vector_measure(dsm, vector, QUOIT_DSM_STREAM_BYTES);
    if (bytes > 0)
        vector_place(dsm, vector, bytes, quoit_dsm_stand_in_least(request->flags));
    if (is_right && (vector->places || (bytes == 0 && is_shared))) {
        vector_fill(vector, request->is_in);
        return true;
    }
    quoit_dsm_stand_in_end(dsm, vector->tables);
    return false;
}

static void vector_close(struct quoit_dsm *dsm, const struct vector *vector)
{
    if (vector->memory.start)
        quoit_dsm_stand_in_end(dsm, vector->memory);
    quoit_dsm_stand_in_end(dsm, vector->tables);
}

/* The library, if it helps with system calls. */
static struct quoit_dsm *helper(void)
{
    struct quoit_dsm *dsm = __atomic_load_n(&quoit_dsm, __ATOMIC_ACQUIRE);
    return dsm && dsm->options.values[QUOIT_DSM_CALLS] == 0 ? dsm : NULL;
}

/* These functions are cancellation points. */
static long call_now(long number, const uint64_t arguments[6])
{
    int before, unused;
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &before);
    long result = quoit_dsm_call_now(number, arguments, PTHREAD_CANCEL_ASYNCHRONOUS);
    pthread_setcanceltype(before, &unused);
    return result;
}

static ssize_t finish(long result)
{
    if (result >= 0)
        return result;
    errno = (int)-result;
    return -1;
}

/* Arguments 1 and 2 are the vector. */
static ssize_t call_vector(const struct request *request, const uint64_t arguments[6])
{
    struct quoit_dsm *dsm = helper();
    struct vector vector;
    uint64_t own[6];
    if (!dsm || !vector_open(dsm, &vector, (const struct iovec *)arguments[1], arguments[2], request))
        return finish(call_now(request->number, arguments));
    memcpy(own, arguments, sizeof own);
    own[1] = (uintptr_t)vector.buffers;
    own[2] = vector.count;
    long result = call_now(request->number, own);
    if (!request->is_in && result > 0)
        vector_store(&vector, (uint64_t)result);
    vector_close(dsm, &vector);
    return finish(result);
}

/* The message is argument 1. */
static ssize_t call_message(const struct request *request, struct msghdr *theirs)
{
    struct quoit_dsm *dsm = helper();
    struct vector vector;
    uint64_t arguments[6] = {(uint64_t)request->fd, (uintptr_t)theirs, request->flags};
    if (dsm && theirs) {
        quoit_dsm_call_touch(dsm, (uintptr_t)theirs, !request->is_in);
        quoit_dsm_call_touch(dsm, (uintptr_t)theirs->msg_name, !request->is_in);
        quoit_dsm_call_touch(dsm, (uintptr_t)theirs->msg_control, !request->is_in);
    }
    if (!dsm || !theirs || !vector_open(dsm, &vector, theirs->msg_iov, theirs->msg_iovlen, request))
        return finish(call_now(request->number, arguments));
    struct msghdr header = *theirs;
    header.msg_iov = vector.buffers;
    header.msg_iovlen = vector.count;
    arguments[1] = (uintptr_t)&header;
    long result = call_now(request->number, arguments);
    if (!request->is_in && result >= 0) {
        vector_store(&vector, (uint64_t)result);
        theirs->msg_namelen = header.msg_namelen;
        theirs->msg_controllen = header.msg_controllen;
        theirs->msg_flags = header.msg_flags;
    }
    vector_close(dsm, &vector);
    return finish(result);
}

EXPORT ssize_t readv(int fd, const struct iovec *parts, int count)
{
    const struct request request = {SYS_readv, "readv", false, fd, 0};
    const uint64_t arguments[6] = {(uint64_t)fd, (uintptr_t)parts, (uint64_t)count};
    return call_vector(&request, arguments);
}

EXPORT ssize_t writev(int fd, const struct iovec *parts, int count)
{
    const struct request request = {SYS_writev, "writev", true, fd, 0};
    const uint64_t arguments[6] = {(uint64_t)fd, (uintptr_t)parts, (uint64_t)count};
    return call_vector(&request, arguments);
}

/* An offset is one argument of the kernel's, and a second one of 0, where a long has 64 bits. */
EXPORT ssize_t preadv(int fd, const struct iovec *parts, int count, off_t offset)
{
    const struct request request = {SYS_preadv, "preadv", false, fd, 0};
    const uint64_t arguments[6] = {(uint64_t)fd, (uintptr_t)parts, (uint64_t)count, (uint64_t)offset};
    return call_vector(&request, arguments);
}

EXPORT ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
    const struct request request = {SYS_pwritev, "pwritev", true, fd, 0};
    const uint64_t arguments[6] = {(uint64_t)fd, (uintptr_t)parts, (uint64_t)count, (uint64_t)offset};
    return call_vector(&request, arguments);
}

EXPORT ssize_t preadv2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
    const struct request request = {SYS_preadv2, "preadv2", false, fd, 0};
    const uint64_t arguments[6] = {(uint64_t)fd,   (uintptr_t)parts, (uint64_t)count, (uint64_t)offset, 0,
                                   (uint64_t)flags};
    return call_vector(&request, arguments);
}

EXPORT ssize_t pwritev2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
    const struct request request = {SYS_pwritev2, "pwritev2", true, fd, 0};
    const uint64_t arguments[6] = {(uint64_t)fd,   (uintptr_t)parts, (uint64_t)count, (uint64_t)offset, 0,
                                   (uint64_t)flags};
    return call_vector(&request, arguments);
}

#define SAME_AS(name) __attribute__((visibility("default"), alias(name)))
SAME_AS("preadv") ssize_t preadv64(int fd, const struct iovec *parts, int count, off64_t offset);
SAME_AS("pwritev") ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset);
SAME_AS("preadv2") ssize_t preadv64v2(int fd, const struct iovec *parts, int count, off64_t offset, int flags);
SAME_AS("pwritev2") ssize_t pwritev64v2(int fd, const struct iovec *parts, int count, off64_t offset, int flags);

EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    const struct request request = {SYS_sendmsg, "sendmsg", true, fd, (uint64_t)flags};
    return call_message(&request, (struct msghdr *)(uintptr_t)message);
}

EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    const struct request request = {SYS_recvmsg, "recvmsg", false, fd, (uint64_t)flags};
    return call_message(&request, message);
}

/* Not helped: pages that a pipe holds, and many messages in one call. */

EXPORT ssize_t vmsplice(int fd, const struct iovec *parts, size_t count, unsigned flags)
{
    const uint64_t arguments[6] = {(uint64_t)fd, (uintptr_t)parts, count, flags};
    long result = call_now(SYS_vmsplice, arguments);
    struct quoit_dsm *dsm = helper();
    const void *address = dsm && result == -EFAULT ? find_shared(dsm, parts, count) : NULL;
    if (address)
        quoit_dsm_call_complain(dsm, SYS_vmsplice, "vmsplice", address);
    return finish(result);
}

static int call_messages(long number, const char *name, const uint64_t arguments[6])
{
    long result = call_now(number, arguments);
    struct quoit_dsm *dsm = helper();
    const struct mmsghdr *messages = (const struct mmsghdr *)arguments[1];
    const void *address = NULL;
    for (size_t i = 0; dsm && messages && result == -EFAULT && i < (unsigned)arguments[2] && !address; i++)
        address = find_shared(dsm, messages[i].msg_hdr.msg_iov, messages[i].msg_hdr.msg_iovlen);
    if (address)
        quoit_dsm_call_complain(dsm, number, name, address);
    return (int)finish(result);
}

EXPORT int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
    const uint64_t arguments[6] = {(uint64_t)fd, (uintptr_t)messages, count, (uint64_t)flags};
    return call_messages(SYS_sendmmsg, "sendmmsg", arguments);
}

EXPORT int recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *timeout)
{
    const uint64_t arguments[6] = {(uint64_t)fd, (uintptr_t)messages, count, (uint64_t)flags, (uintptr_t)timeout};
    return call_messages(SYS_recvmmsg, "recvmmsg", arguments);
}
