/* SPDX-License-Identifier: BSD-3-Clause */
/* foreign.h - programs whose OpenSHMEM library this oshrun cannot start: that of another project, which would make each
 * PE a job of its own, and that of another version of Quoit.
 */
#ifndef OSHRUN_FOREIGN_H
#define OSHRUN_FOREIGN_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "boot/protocol.h"

#define FOREIGN_NAME_BYTES 64

/* What an ELF program names as its OpenSHMEM library, if that is another project's. */
struct foreign_library {
    char name[FOREIGN_NAME_BYTES]; /* such as liboshmem.so.40 */
    const char *owner;             /* whose it is */
};

/* Whether the program at `path`, relative to the folder, is linked with one. A script or a program that is linked
 * statically names none; nor does one that cannot be read. */
bool foreign_find(int folder_fd, const char *path, struct foreign_library *library_out);

/* The text for the user about a HELLO of another version of Quoit, of which `byte_count` bytes came from process
 * `sender` of this machine. */
void foreign_describe_version(const struct quoit_boot_message *hello, size_t byte_count, pid_t sender,
                              char text_out[QUOIT_BOOT_TEXT_BYTES]);

/* The file of this oshrun, and that of the wrapper of its version, which has the same suffix (oshrun.quoit); "" if they
 * cannot be found. */
void foreign_own_file(char path_out[PATH_MAX]);
void foreign_own_wrapper(char path_out[PATH_MAX]);

#endif
