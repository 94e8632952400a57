/* SPDX-License-Identifier: BSD-3-Clause */
/* assert.h - assertions for defects of Quoit itself. Enabled in every build; one condition per assertion. A failed
 * assertion prints the condition, file and line on stderr and aborts the process. The file is named without its folder,
 * so that an installed library holds no path of the machine that built it.
 */
#ifndef QUOIT_BASE_ASSERT_H
#define QUOIT_BASE_ASSERT_H

__attribute__((noreturn, cold)) void quoit_assert_failed(const char *condition, const char *file, int line);

#ifndef __FILE_NAME__ /* GCC before 12 */
#define __FILE_NAME__ __FILE__
#endif
#define quoit_assert(condition)                                                                                        \
    (__builtin_expect(!!(condition), 1) ? (void)0 : quoit_assert_failed(#condition, __FILE_NAME__, __LINE__))

#endif
