/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/status.h"

static const char *const status_texts[] = {
#define X(name, sentence) [QUOIT_##name] = sentence,
    QUOIT_STATUS_TABLE(X)
#undef X
};

const char *quoit_status_text(enum quoit_status status)
{
    if ((unsigned)status >= sizeof status_texts / sizeof status_texts[0])
        return "unknown status";
    return status_texts[status];
}
