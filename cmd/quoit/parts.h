/* SPDX-License-Identifier: BSD-3-Clause */
/* parts.h - the files of this installation, each with the version that is in it: a part of another one, or what another
 * installation has in PATH before it, is what goes wrong after upgrades.
 */
#ifndef QUOIT_PARTS_H
#define QUOIT_PARTS_H

#include <limits.h>

#include "boot/info.h"

#define PARTS_MAX        16
#define PARTS_NAME_BYTES (NAME_MAX + 16)
#define PARTS_PATH_BYTES (PATH_MAX + NAME_MAX + 2)

struct parts {
    struct quoit_info_part rows[PARTS_MAX];
    char names[PARTS_MAX][PARTS_NAME_BYTES];
    char paths[PARTS_MAX][PARTS_PATH_BYTES];
    uint32_t count;
};

/* Those that are there; rows of what is missing are left out. */
void parts_find(struct parts *parts_out);

#endif
