/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/text.h"

#include <stdint.h>

#define C1_LAST 0x9fu /* the control characters beyond ASCII are U+0080..U+009F */

/* Bytes of the printable character at the start of `text`; 0: there is none. */
static size_t printable_bytes(const unsigned char *text, size_t bytes)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char first = text[0];
    if (first < 0x80)
        return first >= ' ' && first != 0x7f;
    const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc0 || first > 0xf4 || length > bytes)
        return 0;
    uint32_t point = first & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0u) != 0x80)
            return 0;
        point = point << 6 | (text[i] & 0x3fu);
    }
    return point >= least[length] && point > C1_LAST ? length : 0;
}

void quoit_text_clean(char *text, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        size_t length = printable_bytes((const unsigned char *)text + at, bytes - at);
        if (length == 0 && text[at] != '\n')
            text[at] = '?';
        at += length ? length : 1;
    }
}
