/* SPDX-License-Identifier: BSD-3-Clause */
#include "env/primitives.h"

#include <stddef.h>

const struct quoit_primitives *quoit_primitives = NULL;
