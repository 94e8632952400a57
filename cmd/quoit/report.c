/* SPDX-License-Identifier: BSD-3-Clause */
#include "report.h"

#include "prefix.h"

bool report_make(FILE *data, const char *path)
{
    rewind(data);
    return prefix_run_python("report.py", (const char *const[3]){"-", path, NULL}, data, NULL) == 0;
}
