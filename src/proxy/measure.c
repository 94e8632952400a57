/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/measure.h"
#include "env/clock.h"
#include "env/wait.h"

#define ROUND_COUNT 3
#define ROW_COUNT   8
#define BYTES_LEAST 256
#define HOPELESS    2 /* times slower in the first round: no further rounds */
/* Submitting a put to the proxy and waiting for its acknowledgement: a wake and more. */
#define PROXY_RELAYED_NS 10000

struct subject {
    struct quoit_port *port;
    const char *source;
    uint64_t at; /* in the window SLOTS */
};

/* `count` payloads in a row; the time of one. Both return 0 if the link failed. */
static uint64_t time_copy(const struct subject *subject, size_t bytes, uint32_t count)
{
    uint64_t start_ns = quoit_clock_now_ns();
    for (uint32_t i = 0; i < count; i++)
        if (quoit_port_write(subject->port, QUOIT_WINDOW_SLOTS, subject->at, subject->source, bytes) != QUOIT_OK)
            return 0;
    uint64_t ns = (quoit_clock_now_ns() - start_ns) / count;
    return ns ? ns : 1;
}

static uint64_t time_dma(const struct subject *subject, size_t bytes, uint32_t count)
{
    struct quoit_dma_done done[ROW_COUNT];
    uint64_t start_ns = quoit_clock_now_ns();
    uint32_t submit_count = 0, done_count = 0, ok_count = 0;
    while (submit_count < count && quoit_port_dma_submit(subject->port, 0, QUOIT_WINDOW_SLOTS, subject->at,
                                                         subject->source, bytes, submit_count) == QUOIT_OK)
        submit_count++;
    while (done_count < submit_count) {
        uint32_t found_count = quoit_port_dma_poll(subject->port, 0, done, ROW_COUNT);
        for (uint32_t i = 0; i < found_count; i++)
            ok_count += done[i].status == QUOIT_OK;
        done_count += found_count;
        if (found_count == 0)
            quoit_wait_yield();
    }
    uint64_t ns = (quoit_clock_now_ns() - start_ns) / count;
    return ok_count == count ? ns : 0;
}

/* The minimum over some alternating rounds. False: the link or DMA failed. */
static bool time_both(const struct subject *subject, size_t bytes, uint32_t count, uint64_t *copy_ns_out,
                      uint64_t *dma_ns_out)
{
    *copy_ns_out = *dma_ns_out = UINT64_MAX;
    for (int round = 0; round < ROUND_COUNT; round++) {
        uint64_t copy_ns = time_copy(subject, bytes, count), dma_ns = time_dma(subject, bytes, count);
        if (copy_ns == 0 || dma_ns == 0)
            return false;
        *copy_ns_out = copy_ns < *copy_ns_out ? copy_ns : *copy_ns_out;
        *dma_ns_out = dma_ns < *dma_ns_out ? dma_ns : *dma_ns_out;
        if (*dma_ns_out > HOPELESS * *copy_ns_out)
            break;
    }
    return true;
}

/* One payload: by a quarter, so that noise does not decide. In a row DMA need only keep pace, since the lane does other
 * work meanwhile. */
static bool does_dma_win(uint64_t copy_ns, uint64_t dma_ns, uint32_t count)
{
    return dma_ns < (count == 1 ? copy_ns / 4 * 3 : copy_ns);
}

/* DMA wins at `bytes`; halves that as long as it wins. */
static uint64_t least_won(const struct subject *subject, uint64_t bytes, uint32_t count)
{
    uint64_t copy_ns, dma_ns;
    while (bytes / 2 >= BYTES_LEAST && time_both(subject, bytes / 2, count, &copy_ns, &dma_ns) &&
           does_dma_win(copy_ns, dma_ns, count))
        bytes /= 2;
    return bytes;
}

struct quoit_measured quoit_measure(const struct quoit_layout *layout, void *memory, struct quoit_port *port)
{
    struct quoit_measured measured = QUOIT_MEASURED_NEVER;
    const struct subject subject = {.port = port,
                                    .source = (const char *)memory + layout->staging,
                                    .at = quoit_layout_slot(layout, 0, QUOIT_CLASS_REQUEST, 0) + QUOIT_FRAME_BYTES};
    uint64_t chunk_bytes = layout->job.chunk_bytes;
    time_dma(&subject, sizeof(uint64_t), 1); /* the first descriptor may have to start an engine */
    if (!time_both(&subject, chunk_bytes, 1, &measured.copy_ns, &measured.dma_ns) ||
        !does_dma_win(measured.copy_ns, measured.dma_ns, 1))
        return measured;
    measured.dma_bytes = least_won(&subject, chunk_bytes, 1);
    measured.queued_bytes = least_won(&subject, measured.dma_bytes, ROW_COUNT);
    uint64_t chunk_count = PROXY_RELAYED_NS / (measured.copy_ns - measured.dma_ns) + 1;
    measured.direct_bytes = (chunk_count > 2 ? chunk_count : 2) * chunk_bytes;
    return measured;
}
