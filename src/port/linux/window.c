/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "port/linux/opening.h"
#include "port/words.h"

#define LINE_BYTES  64u
#define CHUNK_BYTES 65536u /* a long copy checks the link this often */

/* A line in one go: its words stand in the buffer that combines writes as shortly as can be, so that no other store
 * evicts it in parts. */
static void store_lines(volatile char *to, const char *from, size_t bytes)
{
    for (size_t done = 0; done < bytes; done += LINE_BYTES) {
#pragma GCC unroll 8
        for (size_t i = 0; i < LINE_BYTES; i += QUOIT_WORD_BYTES) {
            uint64_t word;
            memcpy(&word, from + done + i, sizeof word);
            *(volatile uint64_t *)(uintptr_t)(to + done + i) = word;
        }
    }
}

/* Mappings of windows are write-combined: lines leave whole when they are filled in order, and at the latest with the
 * fence that ends each write, which keeps writes in their order. No word is torn. */
static void store(volatile char *to, const char *from, size_t bytes)
{
    size_t head = quoit_bytes_to_boundary(to, LINE_BYTES, bytes), lines = (bytes - head) & ~(size_t)(LINE_BYTES - 1);
    quoit_store_words(to, from, head);
    store_lines(to + head, from + head, lines);
    quoit_store_words(to + head + lines, from + head + lines, bytes - head - lines);
}

static void load(char *to, const volatile char *from, size_t bytes)
{
    size_t done = 0;
    for (; done < bytes && (uintptr_t)(from + done) % QUOIT_WORD_BYTES != 0; done++)
        to[done] = from[done];
    for (; bytes - done >= QUOIT_WORD_BYTES; done += QUOIT_WORD_BYTES) {
        uint64_t word = *(const volatile uint64_t *)(uintptr_t)(from + done);
        memcpy(to + done, &word, sizeof word);
    }
    for (; done < bytes; done++)
        to[done] = from[done];
}

static enum quoit_status pin(struct quoit_linux_port *port, struct quoit_linux_range *range, uint64_t offset,
                             uint64_t bytes)
{
    if (range->memory_fd >= 0 && range->offset == offset && range->bytes == bytes)
        return QUOIT_OK;
    if (range->memory_fd >= 0)
        close(range->memory_fd);
    *range = (struct quoit_linux_range){.offset = offset, .bytes = bytes, .memory_fd = -1};
    enum quoit_status status =
        quoit_linux_device_pin(port->fd, (char *)port->port.memory.base + offset, bytes, &range->memory_fd);
    if (status == QUOIT_SYSTEM)
        quoit_log(QUOIT_LOG_ERROR, "pinning %llu KiB of memory for a window: %s%s", (unsigned long long)bytes >> 10,
                  strerror(errno), errno == ENOMEM ? " (ulimit -l)" : "");
    return status;
}

enum quoit_status quoit_linux_set_translation(struct quoit_port *port, enum quoit_window window, uint64_t memory_offset,
                                              uint64_t bytes)
{
    struct quoit_linux_port *self = quoit_linux_port_of(port);
    struct quoit_linux_range *range = &self->ranges[window];
    if (bytes == 0)
        return quoit_linux_device_expose(self->fd, window, -1, 0);
    enum quoit_status status = pin(self, range, memory_offset, bytes);
    if (status != QUOIT_OK)
        return status;
    status = quoit_linux_device_expose(self->fd, window, range->memory_fd, bytes);
    if (status == QUOIT_UNSUPPORTED)
        quoit_log(QUOIT_LOG_ERROR,
                  "the bridge cannot reach %llu KiB of memory in one piece: it needs an IOMMU, or huge pages "
                  "(docs/build-a-ring.md)",
                  (unsigned long long)bytes >> 10);
    else if (status != QUOIT_OK)
        quoit_log(QUOIT_LOG_ERROR, "translating window %u to %llu KiB of memory: %s", window,
                  (unsigned long long)bytes >> 10, strerror(errno));
    return status;
}

enum quoit_status quoit_linux_write(struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                    const void *source, size_t bytes)
{
    struct quoit_linux_port *self = quoit_linux_port_of(port);
    uint64_t link = quoit_linux_sending_link(self);
    for (size_t done = 0; link != 0;) {
        size_t chunk_bytes = bytes - done < CHUNK_BYTES ? bytes - done : CHUNK_BYTES;
        store(self->window[window] + offset + done, (const char *)source + done, chunk_bytes);
        done += chunk_bytes;
        if (done == bytes) {
            quoit_linux_flush_stores();
            return QUOIT_OK;
        }
        if (quoit_linux_link(self) != link)
            break;
    }
    return QUOIT_LINK_DOWN;
}

enum quoit_status quoit_linux_write64(struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                      uint64_t value)
{
    struct quoit_linux_port *self = quoit_linux_port_of(port);
    if (quoit_linux_sending_link(self) == 0)
        return QUOIT_LINK_DOWN;
    *(volatile uint64_t *)(void *)(self->window[window] + offset) = value;
    quoit_linux_flush_stores();
    return QUOIT_OK;
}

/* What was read while the link went down is of the page that stands behind the window then. */
enum quoit_status quoit_linux_read(struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                   void *destination, size_t bytes)
{
    struct quoit_linux_port *self = quoit_linux_port_of(port);
    uint64_t link = quoit_linux_sending_link(self);
    if (link == 0)
        return QUOIT_LINK_DOWN;
    quoit_linux_flush_stores();
    load(destination, self->window[window] + offset, bytes);
    atomic_thread_fence(memory_order_acquire); /* the state is read after the window */
    return quoit_linux_link(self) == link ? QUOIT_OK : QUOIT_LINK_DOWN;
}
