/* SPDX-License-Identifier: BSD-3-Clause */
/* text.h - text that users, files and other machines supply, on its way to a terminal. */
#ifndef QUOIT_BASE_TEXT_H
#define QUOIT_BASE_TEXT_H

#include <stddef.h>

/* Replaces in place, by '?' each, the bytes that a terminal would obey: control characters, those of UTF-8 too, and
 * what is no UTF-8. Newlines stay: messages have several lines. Any thread; no errors. */
void quoit_text_clean(char *text, size_t bytes);

#endif
