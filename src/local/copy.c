/* SPDX-License-Identifier: BSD-3-Clause */
#include "local/copy.h"
#include "base/assert.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define LINE_BYTES 64u

static const char *const names[] = {
#define X(method, name) name,
    QUOIT_COPY_METHODS(X)
#undef X
};

const char *quoit_copy_method_name(enum quoit_copy_method method)
{
    quoit_assert(method < QUOIT_COPY_METHOD_COUNT);
    return names[method];
}

enum quoit_copy_method quoit_copy_method_find(const char *name, size_t bytes)
{
    for (enum quoit_copy_method method = 0; method < QUOIT_COPY_METHOD_COUNT; method++)
        if (strlen(names[method]) == bytes && memcmp(names[method], name, bytes) == 0)
            return method;
    return QUOIT_COPY_METHOD_COUNT;
}

#if defined(__x86_64__)
bool quoit_copy_is_built(enum quoit_copy_method method)
{
    return method < QUOIT_COPY_METHOD_COUNT;
}

static void copy_movsb(void *to, const void *from, size_t bytes)
{
    __asm__ __volatile__("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

/* Streams the whole cache lines of `to` past the caches; the ends are copied normally. */
static void copy_stream(char *to, const char *from, size_t bytes)
{
    size_t head = -(uintptr_t)to & (LINE_BYTES - 1);
    head = head < bytes ? head : bytes;
    memmove(to, from, head); /* the ranges may be the same */
    size_t at = head;
    for (; bytes - at >= LINE_BYTES; at += LINE_BYTES) {
        const __m128i *line = (const __m128i *)(const void *)(from + at);
        __m128i a = _mm_loadu_si128(line), b = _mm_loadu_si128(line + 1);
        __m128i c = _mm_loadu_si128(line + 2), d = _mm_loadu_si128(line + 3);
        __m128i *out = (__m128i *)(void *)(to + at);
        _mm_stream_si128(out, a);
        _mm_stream_si128(out + 1, b);
        _mm_stream_si128(out + 2, c);
        _mm_stream_si128(out + 3, d);
    }
    _mm_sfence(); /* streaming stores are ordered with nothing else */
    memmove(to + at, from + at, bytes - at);
}
#else
bool quoit_copy_is_built(enum quoit_copy_method method)
{
    return method == QUOIT_COPY_MEMCPY || method == QUOIT_COPY_CMA;
}

static void copy_movsb(void *to, const void *from, size_t bytes)
{
    memmove(to, from, bytes);
}

static void copy_stream(char *to, const char *from, size_t bytes)
{
    memmove(to, from, bytes);
}
#endif

static void copy_mapped(enum quoit_copy_method method, void *to, const void *from, size_t bytes)
{
    if (method == QUOIT_COPY_MOVSB)
        copy_movsb(to, from, bytes);
    else if (method == QUOIT_COPY_STREAM)
        copy_stream(to, from, bytes);
    else
        memmove(to, from, bytes);
}

typedef ssize_t cma_call(pid_t pid, const struct iovec *local, unsigned long local_count, const struct iovec *remote,
                         unsigned long remote_count, unsigned long flags);

/* The bytes that the kernel copied before it refused. */
static size_t copy_cma(cma_call *call, const struct quoit_copy_place *place, void *buffer, size_t bytes)
{
    size_t done = 0;
    while (done < bytes) {
        struct iovec local = {.iov_base = (char *)buffer + done, .iov_len = bytes - done};
        struct iovec remote = {.iov_base = (char *)(uintptr_t)place->there + done, .iov_len = bytes - done};
        ssize_t n = call((pid_t)place->pid, &local, 1, &remote, 1, 0);
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    return done;
}

void quoit_copy_put(enum quoit_copy_method method, const struct quoit_copy_place *to, const void *from, size_t bytes)
{
    size_t done = method == QUOIT_COPY_CMA ? copy_cma(process_vm_writev, to, (void *)(uintptr_t)from, bytes) : 0;
    if (done < bytes)
        copy_mapped(method, to->here + done, (const char *)from + done, bytes - done);
}

void quoit_copy_get(enum quoit_copy_method method, void *to, const struct quoit_copy_place *from, size_t bytes)
{
    size_t done = method == QUOIT_COPY_CMA ? copy_cma(process_vm_readv, from, to, bytes) : 0;
    if (done < bytes)
        copy_mapped(method, (char *)to + done, from->here + done, bytes - done);
}

void quoit_copy_allow_cma(void)
{
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* EINVAL without Yama: no permission is needed then */
}

int quoit_copy_probe_cma(const struct quoit_copy_place *place, uint64_t value)
{
    uint64_t word = 0;
    if (copy_cma(process_vm_readv, place, &word, sizeof word) != sizeof word)
        return errno;
    if (word != value)
        return ESRCH; /* pids of another namespace */
    return copy_cma(process_vm_writev, place, &word, sizeof word) == sizeof word ? 0 : errno;
}
