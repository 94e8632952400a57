/* SPDX-License-Identifier: BSD-3-Clause */
/* variables.h - the variables of one object, program or library, that objects.c puts into and gets from. */
#include <stddef.h>

struct variable {
    const char *name;
    unsigned char *at;
    size_t bytes;
    size_t alignment;
    unsigned char first, last; /* as initialised: of the first and the last byte; those between are 0 */
};
#define VARIABLES 7

const struct variable *variables_of_program(void);
const struct variable *variables_of_library(void);
