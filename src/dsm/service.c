/* SPDX-License-Identifier: BSD-3-Clause */
#include "dsm/service.h"

#include <shmem.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "dsm/coherence.h"
#include "dsm/diff.h"
#include "dsm/exclusive.h"
#include "dsm/home.h"
#include "dsm/net.h"
#include "dsm/order.h"
#include "dsm/profile.h"
#include "dsm/space.h"

#define BUFFERS       4
#define PAYLOAD_BYTES (4096 + 4096 / 64 * 8)

/* Written by the requester, or by the directory that forwards it; `number` last. */
struct request {
    uint64_t number;
    uint64_t page;
    uint64_t is_first; /* the requester does not know the home: appoint it, or forward */
    uint64_t word;     /* otherwise the directory's word, as the directory or the requester knows it */
};

/* Written by the sender, `ticket` last. bytes is 0 for a time-stamp. The payload: one mask for each 64 bytes, then the
 * bytes of the set bits. */
struct buffer {
    uint64_t ticket;
    uint64_t page;
    uint32_t offset, bytes;
    uint64_t version;
    char payload[PAYLOAD_BYTES];
};

/* The slot for responses, at the requester. */
struct answer {
    uint64_t number; /* of the request; written last */
    uint64_t word;   /* as the directory has it */
};

struct quoit_dsm_service {
    pthread_t thread;
    /* Symmetric. */
    uint64_t *bell; /* incremented by each request and each buffer */
    uint64_t *is_stopping;
    struct request *requests; /* [requester] */
    struct buffer *buffers;   /* [sender][BUFFERS] */
    struct answer *answer;
    uint64_t *versions; /* [writer], part of a response */
    uint64_t *acks;     /* [home]: how many buffers have been applied there */
    /* Of the requester. */
    uint64_t number;
    uint64_t *tickets; /* [home] */
    struct buffer *outgoing;
    /* Of the handler. */
    uint64_t *seen_numbers; /* [requester] */
    uint64_t *seen_tickets; /* [sender] */
    uint64_t *outgoing_versions;
};

/* A handler that finds nothing sleeps until the next time, and nothing but a fence orders an atomic operation behind
 * what it announces. */
static void ring_bell(struct quoit_dsm *dsm, int pe)
{
    quoit_dsm_fence(dsm);
    quoit_dsm_add(dsm, dsm->service->bell, 1, pe);
}

/* The requester */

static void ask(struct quoit_dsm *dsm, uint64_t page, int pe, bool is_first)
{
    struct quoit_dsm_service *service = dsm->service;
    struct request request = {++service->number, page, is_first, quoit_dsm_home_word(pe, dsm->kind_of[page])};
    struct request *there = &service->requests[dsm->me];
    quoit_dsm_put(dsm, &there->page, &request.page, sizeof request - sizeof request.number, pe);
    quoit_dsm_fence(dsm);
    quoit_dsm_set(dsm, &there->number, request.number, pe);
    ring_bell(dsm, pe);
    quoit_dsm_wait_least(dsm, &service->answer->number, request.number);
    quoit_dsm_order_after(there);
}

uint64_t quoit_dsm_service_resolve(struct quoit_dsm *dsm, uint64_t page, int directory)
{
    ask(dsm, page, directory, true);
    uint64_t word = dsm->service->answer->word;
    if (quoit_dsm_home_in(word) != dsm->me)
        dsm->arrived_page = page;
    return word;
}

void quoit_dsm_service_fetch(struct quoit_dsm *dsm, uint64_t page, int home)
{
    ask(dsm, page, home, false);
}

const uint64_t *quoit_dsm_service_versions(const struct quoit_dsm *dsm)
{
    return dsm->service->versions;
}

static void send_buffer(struct quoit_dsm *dsm, int home, size_t payload_bytes)
{
    struct quoit_dsm_service *service = dsm->service;
    struct buffer *out = service->outgoing;
    uint64_t ticket = ++service->tickets[home];
    if (ticket > BUFFERS)
        quoit_dsm_wait_least(dsm, &service->acks[home], ticket - BUFFERS);
    struct buffer *there = &service->buffers[(uint64_t)dsm->me * BUFFERS + ticket % BUFFERS];
    quoit_dsm_put(dsm, &there->page, &out->page,
                  offsetof(struct buffer, payload) - offsetof(struct buffer, page) + payload_bytes, home);
    quoit_dsm_fence(dsm);
    quoit_dsm_set(dsm, &there->ticket, ticket, home);
    ring_bell(dsm, home);
}

void quoit_dsm_service_diff(struct quoit_dsm *dsm, uint64_t page, size_t offset, const char *from,
                            const uint64_t *masks, size_t bytes)
{
    struct buffer *out = dsm->service->outgoing;
    size_t mask_bytes = bytes / 64 * sizeof *masks, at = mask_bytes;
    *out = (struct buffer){.page = page, .offset = (uint32_t)offset, .bytes = (uint32_t)bytes};
    memcpy(out->payload, masks, mask_bytes);
    struct quoit_dsm_run runs[4096 / 2];
    size_t count = quoit_dsm_diff_runs(masks, bytes, runs, sizeof runs / sizeof runs[0]);
    for (size_t i = 0; i < count; i++) {
        memcpy(out->payload + at, from + runs[i].offset, runs[i].bytes);
        at += runs[i].bytes;
    }
    if (dsm->options.values[QUOIT_DSM_BREAK] == QUOIT_DSM_BREAK_RUN)
        out->payload[at - 1] = 0;
    dsm->stats.diff_runs += count;
    dsm->stats.diff_bytes += at - mask_bytes;
    send_buffer(dsm, quoit_dsm_home_known(dsm, page), at);
}

void quoit_dsm_service_version(struct quoit_dsm *dsm, uint64_t page, uint64_t version)
{
    *dsm->service->outgoing = (struct buffer){.page = page, .version = version};
    send_buffer(dsm, quoit_dsm_home_known(dsm, page), 0);
}

void quoit_dsm_service_settle(struct quoit_dsm *dsm)
{
    for (int home = 0; home < dsm->pe_count; home++)
        quoit_dsm_wait_least(dsm, &dsm->service->acks[home], dsm->service->tickets[home]);
}

/* The handler */

static void answer(struct quoit_dsm *dsm, int requester, const struct request *request, uint64_t word)
{
    struct quoit_dsm_service *service = dsm->service;
    if (quoit_dsm_home_in(word) == dsm->me) {
        const uint64_t *row = &dsm->version[request->page * (uint64_t)dsm->pe_count];
        quoit_dsm_exclusive_mark(dsm, request->page);
        quoit_dsm_take(dsm, request->page, 1, dsm->me); /* the home may have been appointed, without having used it */
        for (int pe = 0; pe < dsm->pe_count; pe++)
            service->outgoing_versions[pe] = __atomic_load_n(&row[pe], __ATOMIC_ACQUIRE);
        quoit_dsm_put(dsm, service->versions, service->outgoing_versions, (size_t)dsm->pe_count * sizeof *row,
                      requester);
        char *frame = quoit_dsm_frame(dsm, request->page);
        quoit_dsm_content_begin();
        quoit_dsm_put(dsm, frame, frame, dsm->page_bytes, requester);
        quoit_dsm_content_end();
    }
    quoit_dsm_put(dsm, &service->answer->word, &word, sizeof word, requester);
    quoit_dsm_fence(dsm);
    quoit_dsm_set(dsm, &service->answer->number, request->number, requester);
}

static void forward(struct quoit_dsm *dsm, int requester, const struct request *request, uint64_t word)
{
    struct request *there = &dsm->service->requests[requester];
    struct request onward = {request->number, request->page, false, word};
    int home = quoit_dsm_home_in(word);
    quoit_dsm_put(dsm, &there->page, &onward.page, sizeof onward - sizeof onward.number, home);
    quoit_dsm_fence(dsm);
    quoit_dsm_order_before(there); /* after the home's answer this PE may ask again */
    quoit_dsm_set(dsm, &there->number, request->number, home);
    ring_bell(dsm, home);
    dsm->stats.forwarded++;
}

static void serve_request(struct quoit_dsm *dsm, int requester, uint64_t number)
{
    const struct request *there = &dsm->service->requests[requester];
    struct request request = {number, there->page, there->is_first, there->word};
    if (!request.is_first) {
        answer(dsm, requester, &request, request.word);
        return;
    }
    quoit_dsm_order_after(dsm->homes);
    uint64_t *at = &dsm->homes[request.page], word = __atomic_load_n(at, __ATOMIC_ACQUIRE);
    while (quoit_dsm_home_in(word) == QUOIT_DSM_NO_HOME) {
        uint64_t expected = word, appointed = word + (uint64_t)requester + 1;
        word = quoit_dsm_compare_swap(dsm, at, expected, appointed, dsm->me);
        if (word == expected)
            word = appointed;
    }
    if (quoit_dsm_home_in(word) == requester || quoit_dsm_home_in(word) == dsm->me)
        answer(dsm, requester, &request, word);
    else
        forward(dsm, requester, &request, word);
}

static void apply_buffer(struct quoit_dsm *dsm, int sender, const struct buffer *buffer)
{
    if (buffer->bytes == 0) {
        __atomic_store_n(&dsm->version[buffer->page * (uint64_t)dsm->pe_count + (uint64_t)sender], buffer->version,
                         __ATOMIC_RELEASE);
        return;
    }
    uint64_t masks[4096 / 64];
    quoit_assert(buffer->bytes <= 4096);
    memcpy(masks, buffer->payload, buffer->bytes / 64 * sizeof masks[0]);
    const char *from = buffer->payload + buffer->bytes / 64 * sizeof masks[0];
    char *frame = quoit_dsm_frame(dsm, buffer->page) + buffer->offset;
    struct quoit_dsm_run runs[4096 / 2];
    size_t count = quoit_dsm_diff_runs(masks, buffer->bytes, runs, sizeof runs / sizeof runs[0]);
    quoit_dsm_content_begin();
    for (size_t i = 0; i < count; i++) {
        memcpy(frame + runs[i].offset, from, runs[i].bytes);
        from += runs[i].bytes;
    }
    quoit_dsm_content_end();
}

/* Returns whether there was work. */
static bool serve_all(struct quoit_dsm *dsm)
{
    struct quoit_dsm_service *service = dsm->service;
    bool did = false;
    for (int pe = 0; pe < dsm->pe_count; pe++) {
        uint64_t ticket = service->seen_tickets[pe] + 1;
        struct buffer *buffer = &service->buffers[(uint64_t)pe * BUFFERS + ticket % BUFFERS];
        if (__atomic_load_n(&buffer->ticket, __ATOMIC_ACQUIRE) == ticket) {
            quoit_dsm_pause(dsm);
            apply_buffer(dsm, pe, buffer);
            service->seen_tickets[pe] = ticket;
            quoit_dsm_increment(dsm, &service->acks[dsm->me], pe); /* several may arrive in any order */
            dsm->stats.served++;
            did = true;
        }
        uint64_t number = __atomic_load_n(&service->requests[pe].number, __ATOMIC_ACQUIRE);
        if (number != service->seen_numbers[pe]) {
            service->seen_numbers[pe] = number;
            serve_request(dsm, pe, number);
            dsm->stats.served++;
            did = true;
        }
    }
    return did;
}

static void *run(void *argument)
{
    struct quoit_dsm *dsm = argument;
    struct quoit_dsm_service *service = dsm->service;
    struct quoit_dsm_row call = quoit_dsm_row_begin(NULL, NULL, false); /* no part of the program */
    for (;;) {
        uint64_t rung = __atomic_load_n(service->bell, __ATOMIC_ACQUIRE);
        uint64_t since = quoit_dsm_now_ns();
        while (serve_all(dsm))
            continue;
        dsm->stats.service_ns += quoit_dsm_now_ns() - since;
        if (__atomic_load_n(service->is_stopping, __ATOMIC_ACQUIRE))
            break;
        quoit_dsm_wait_not(dsm, service->bell, rung);
    }
    quoit_dsm_row_end(&call);
    return NULL;
}

static void *symmetric(size_t count, size_t bytes)
{
    void *block = shmem_calloc(count, bytes);
    if (!block)
        quoit_dsm_wrong("no symmetric memory for the handler's buffers; a larger SHMEM_SYMMETRIC_SIZE helps");
    return block;
}

/* The handler calls OpenSHMEM beside the program. */
static void require_threads(void)
{
    int provided = SHMEM_THREAD_SINGLE;
    shmem_query_thread(&provided);
    if (provided != SHMEM_THREAD_MULTIPLE)
        quoit_dsm_wrong("DSM_PROTOCOL=async, ardmar or draw, and DSM_HANDLER=on, need SHMEM_THREAD_MULTIPLE, but "
                        "OpenSHMEM was initialized with less; begin it by dsm_init, or by "
                        "shmem_init_thread(SHMEM_THREAD_MULTIPLE)");
}

void quoit_dsm_service_start(struct quoit_dsm *dsm)
{
    if (!quoit_dsm_fetches_by_service(dsm->protocol) && !quoit_dsm_diffs_by_service(dsm->protocol) &&
        (dsm->options.values[QUOIT_DSM_HANDLER] == 0 || dsm->is_direct))
        return;
    require_threads();
    size_t count = (size_t)dsm->pe_count;
    struct quoit_dsm_service *service = calloc(1, sizeof *service);
    service->bell = symmetric(2, sizeof(uint64_t));
    service->is_stopping = service->bell + 1;
    service->requests = symmetric(count, sizeof(struct request));
    service->buffers = symmetric(count * BUFFERS, sizeof(struct buffer));
    service->answer = symmetric(1, sizeof(struct answer));
    service->versions = symmetric(count, sizeof(uint64_t));
    service->acks = symmetric(count, sizeof(uint64_t));
    service->tickets = calloc(count, sizeof(uint64_t));
    service->seen_numbers = calloc(count, sizeof(uint64_t));
    service->seen_tickets = calloc(count, sizeof(uint64_t));
    service->outgoing_versions = calloc(count, sizeof(uint64_t));
    service->outgoing = calloc(1, sizeof *service->outgoing);
    dsm->service = service;
    if (pthread_create(&service->thread, NULL, run, dsm) != 0)
        quoit_dsm_wrong("the handler's thread cannot be made; protocol newgendsm needs none");
}

/* After a barrier: no PE sends requests any more. */
void quoit_dsm_service_stop(struct quoit_dsm *dsm)
{
    struct quoit_dsm_service *service = dsm->service;
    if (!service)
        return;
    __atomic_store_n(service->is_stopping, 1, __ATOMIC_RELEASE);
    quoit_dsm_add(dsm, service->bell, 1, dsm->me);
    pthread_join(service->thread, NULL);
    shmem_barrier_all();
    shmem_free(service->bell);
    shmem_free(service->requests);
    shmem_free(service->buffers);
    shmem_free(service->answer);
    shmem_free(service->versions);
    shmem_free(service->acks);
    free(service->tickets);
    free(service->seen_numbers);
    free(service->seen_tickets);
    free(service->outgoing_versions);
    free(service->outgoing);
    free(service);
    dsm->service = NULL;
}
