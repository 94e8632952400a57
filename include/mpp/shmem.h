/* SPDX-License-Identifier: BSD-3-Clause */
/* mpp/shmem.h - the header under the name it had in older programs. */
#include <shmem.h>
