/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/board.h"
#include "base/assert.h"
#include "env/clock.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum quoit_status quoit_board_open(struct quoit_board *board, uint32_t host_count)
{
    size_t bytes = quoit_board_bytes(host_count);
    void *contacts = MAP_FAILED;
    *board = (struct quoit_board){.fd = memfd_create("quoit-board", MFD_CLOEXEC), .host_count = host_count};
    if (board->fd >= 0 && ftruncate(board->fd, (off_t)bytes) == 0)
        contacts = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, board->fd, 0);
    if (contacts == MAP_FAILED)
        return QUOIT_NO_MEMORY;
    board->contacts = contacts;
    return QUOIT_OK;
}

bool quoit_board_add(struct quoit_board *board, uint32_t host, const void *contact)
{
    quoit_assert(host < board->host_count);
    memcpy(board->contacts[host], contact, QUOIT_NETWORK_CONTACT_BYTES);
    return ++board->contact_count == board->host_count;
}

void quoit_board_fill(struct quoit_board *board, const void *contacts)
{
    memcpy(board->contacts, contacts, (size_t)board->host_count * QUOIT_NETWORK_CONTACT_BYTES);
    board->contact_count = board->host_count;
}

void quoit_board_note_sign(struct quoit_board *board, uint32_t host)
{
    quoit_assert(host < board->host_count);
    atomic_store_explicit(&quoit_board_signs(board->contacts, board->host_count)[host], quoit_clock_now_ns(),
                          memory_order_relaxed);
}
