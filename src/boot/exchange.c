/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/exchange.h"

#include <string.h>

static const struct quoit_exchange_ops *const rows[] = {&quoit_exchange_pmi, &quoit_exchange_pmi2,
                                                        &quoit_exchange_pmix};

const struct quoit_exchange_ops *quoit_exchange_find(const char *launcher)
{
    bool is_auto = strcmp(launcher, "auto") == 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if ((is_auto || strcmp(launcher, rows[i]->name) == 0) && rows[i]->is_here())
            return rows[i];
    return NULL;
}
