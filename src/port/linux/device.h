/* SPDX-License-Identifier: BSD-3-Clause */
/* device.h - the calls of /dev/ntbN, one function each. Private to this folder.
 *
 * What it is: kernel/uapi/quoit_ntb.h is the contract; here its errors become statuses. Everything that this driver
 * asks of the kernel passes through these functions, so a double of the device replaces this file alone.
 *
 * Errors, of all: LINK_DOWN the link is not up in the client's epoch; GONE the port was removed; SYSTEM, with errno.
 */
#ifndef QUOIT_PORT_LINUX_DEVICE_H
#define QUOIT_PORT_LINUX_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "quoit_ntb.h"

/* A new client of the port whose client is `owner_fd`, joined to it: what both lease is common. */
QUOIT_MUST_USE enum quoit_status quoit_linux_device_open(int owner_fd, int *fd_out);
QUOIT_MUST_USE enum quoit_status quoit_linux_device_info(int fd, struct quoit_ntb_info *info_out);
/* Leases `bits`, and all `bytes` of an outbound window; what is leased already stays so. FULL: another client has it.
 */
QUOIT_MUST_USE enum quoit_status quoit_linux_device_lease(int fd, uint64_t bits, uint32_t window, uint64_t bytes);
/* NULL: SYSTEM. The whole of a leased window, and the state of the link; unmapped by munmap(). */
void *quoit_linux_device_map_window(int fd, uint32_t window, uint64_t bytes);
const struct quoit_ntb_state *quoit_linux_device_map_state(int fd);
QUOIT_MUST_USE enum quoit_status quoit_linux_device_want_link(int fd, bool is_wanted);
QUOIT_MUST_USE enum quoit_status quoit_linux_device_accept(int fd, uint32_t epoch);
/* Pins memory of this process, whole pages; a descriptor that the caller closes. */
QUOIT_MUST_USE enum quoit_status quoit_linux_device_pin(int fd, void *base, uint64_t bytes, int *memory_fd_out);
/* bytes 0: takes the window back. UNSUPPORTED: the device sees the memory in pieces. */
QUOIT_MUST_USE enum quoit_status quoit_linux_device_expose(int fd, uint32_t window, int memory_fd, uint64_t bytes);
/* QUOIT_NTB_RING, CLEAR, MASK or UNMASK. */
QUOIT_MUST_USE enum quoit_status quoit_linux_device_bits(int fd, unsigned long command, uint64_t bits);
QUOIT_MUST_USE enum quoit_status quoit_linux_device_bits_set(int fd, uint64_t *bits_out);
QUOIT_MUST_USE enum quoit_status quoit_linux_device_scratchpad(int fd, uint32_t index, uint32_t *value_out);
QUOIT_MUST_USE enum quoit_status quoit_linux_device_scratchpad_peer(int fd, uint32_t index, uint32_t value);
QUOIT_MUST_USE enum quoit_status quoit_linux_device_signal(int fd, const struct quoit_ntb_eventfd *wanted);
/* Hands a copy to the engine. FULL: there is room after a completion; UNSUPPORTED: no engine is free, or the one that
 * is does not see the memory in one piece; INVALID: not aligned as the engine asks. */
QUOIT_MUST_USE enum quoit_status quoit_linux_device_copy(int fd, const struct quoit_ntb_copy *wanted);
/* Takes the ends of copies, at most `most`; how many there were. */
uint32_t quoit_linux_device_done(int fd, struct quoit_ntb_done *done_out, uint32_t most);

#endif
