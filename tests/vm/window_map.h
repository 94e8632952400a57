/* SPDX-License-Identifier: BSD-3-Clause */
/* window_map.h - what ntb_device says to window_map.c: one struct, with the descriptor of a file or none; the answer is
 * an int32_t, 0 or minus an errno. */
#ifndef TESTS_VM_WINDOW_MAP_H
#define TESTS_VM_WINDOW_MAP_H

#include <stdint.h>

#define WINDOW_PREFIX     "ntb-window-" /* of the names of files, which are all different */
#define WINDOW_NAME_BYTES 40

struct window_map {
    char name[WINDOW_NAME_BYTES];
    uint64_t offset; /* in the window */
    uint64_t bytes;
    uint64_t file_offset;
};

#endif
