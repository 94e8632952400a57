/* SPDX-License-Identifier: BSD-3-Clause */
/* Of all but libshmem.a, which has serve/carried.c in place of it. */
#include "boot/program.h"

bool quoit_program_is_carried(void)
{
    return false;
}
