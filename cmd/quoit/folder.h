/* SPDX-License-Identifier: BSD-3-Clause */
/* folder.h - a temporary folder that does not outlive this program, however it ends.
 *
 * A process of its own, the keeper, waits for the end of a pipe whose other end only this program holds, and then
 * removes the folder with the files in it. It is in no group that a terminal's signals reach.
 */
#ifndef QUOIT_FOLDER_H
#define QUOIT_FOLDER_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

struct folder {
    char path[PATH_MAX - 64]; /* a name fits behind it; "": there is none */
    int keeper_fd;
    pid_t keeper;
};

/* In TMPDIR, or /tmp. False: it cannot be made, and stderr says why. */
bool folder_make(struct folder *folder);
/* Returns when it is gone. Does nothing if there is none. */
void folder_remove(struct folder *folder);

#endif
