/* SPDX-License-Identifier: BSD-3-Clause */
/* Compiled for the program and for the library: GETTER is the function's name, ALIGNMENT that of the aligned ones. The
 * large ones are beyond the threshold of the medium code model (64 KiB). */
#include "variables.h"

#define ENDS(bytes, first, last)                                                                                       \
    {                                                                                                                  \
        [0] = (first), [(bytes)-1] = (last)                                                                            \
    }

static unsigned char word[8] = ENDS(8, 1, 2);
static _Alignas(ALIGNMENT) unsigned char aligned_data[5003] = ENDS(5003, 3, 4);
static _Alignas(ALIGNMENT) unsigned char aligned_bss[20011];
unsigned char large_data[66003] = ENDS(66003, 5, 6);
unsigned char large_bss[70001];

const struct variable *GETTER(void)
{
    static _Alignas(ALIGNMENT) unsigned char inner[9] = ENDS(9, 7, 8);
    static unsigned char inner_bss[4099];
    static const struct variable list[VARIABLES] = {
        {"word", word, sizeof word, 1, 1, 2},
        {"aligned_data", aligned_data, sizeof aligned_data, ALIGNMENT, 3, 4},
        {"aligned_bss", aligned_bss, sizeof aligned_bss, ALIGNMENT, 0, 0},
        {"large_data", large_data, sizeof large_data, 1, 5, 6},
        {"large_bss", large_bss, sizeof large_bss, 1, 0, 0},
        {"inner", inner, sizeof inner, ALIGNMENT, 7, 8},
        {"inner_bss", inner_bss, sizeof inner_bss, 1, 0, 0},
    };
    return list;
}
