/* SPDX-License-Identifier: BSD-3-Clause */
#include "library.h"

static long words[LIBRARY_WORDS] = {7};
static long counter;

long *library_words(void)
{
    return words;
}

long *library_counter(void)
{
    return &counter;
}

long *library_hidden(void)
{
    static long hidden = 11;
    return &hidden;
}

long library_sum(void)
{
    long sum = 0;
    for (int i = 0; i < LIBRARY_WORDS; i++)
        sum += words[i];
    return sum;
}
