/* SPDX-License-Identifier: BSD-3-Clause */
/* mpp/shmemx.h - the header under the name it had in older programs. */
#include <shmemx.h>
