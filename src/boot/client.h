/* SPDX-License-Identifier: BSD-3-Clause */
/* client.h - a PE's side of protocol.h, over boot->socket_fd: to oshrun, or to the agent of its host (agent.h).
 *
 * Threads: one at a time. Errors are reported to the user before a function returns, but GONE, which means that the
 * other side has ended.
 */
#ifndef QUOIT_BOOT_CLIENT_H
#define QUOIT_BOOT_CLIENT_H

#include "boot/boot.h"

/* Takes over a connected descriptor: close-on-exec, and remembered by its inode. SYSTEM: it is no open file; nothing
 * was reported. */
QUOIT_MUST_USE enum quoit_status quoit_client_open(struct quoit_boot *boot, int fd);
/* Waits for WELCOME. GONE: the launcher does not take this process. */
QUOIT_MUST_USE enum quoit_status quoit_client_receive_welcome(const struct quoit_boot *boot);
/* Sends one message. GONE too if the program has closed the socket. */
QUOIT_MUST_USE enum quoit_status quoit_client_send(const struct quoit_boot *boot,
                                                   const struct quoit_boot_message *message);
/* Sends HELLO, waits for LAYOUT and maps the memory: fills pe, host, layout, memory, memory_fd, driver and ends. */
QUOIT_MUST_USE enum quoit_status quoit_client_join(struct quoit_boot *boot, const struct quoit_boot_message *hello);
/* Sends READY and waits for GO. */
QUOIT_MUST_USE enum quoit_status quoit_client_barrier(struct quoit_boot *boot);
/* Waits for CONTACT, from the agent. */
QUOIT_MUST_USE enum quoit_status quoit_client_receive_contact(const struct quoit_boot *boot,
                                                              struct quoit_boot_message *message_out);
/* Leaves LEAVING, FINALIZED, ABORT or EXITED in the record of the PE, where the other side finds it. status: of LEAVING
 * whether it is by an exit (quoit_boot_leaving). */
void quoit_client_leave_word(struct quoit_boot *boot, enum quoit_boot_kind kind, uint32_t status,
                             uint64_t meeting_count);

#endif
