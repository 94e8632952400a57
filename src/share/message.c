/* SPDX-License-Identifier: BSD-3-Clause */
#include "share/message.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

socklen_t quoit_share_address(const char *path, struct sockaddr_un *address_out)
{
    size_t length = strlen(path);
    *address_out = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (length == 0 || length >= sizeof address_out->sun_path) {
        errno = ENAMETOOLONG;
        return 0;
    }
    memcpy(address_out->sun_path, path, length);
    if (path[0] != '@')
        return sizeof *address_out;
    address_out->sun_path[0] = '\0';
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
}

void quoit_share_clean_label(char label[QUOIT_SHARE_LABEL_BYTES])
{
    size_t length = strnlen(label, QUOIT_SHARE_LABEL_BYTES - 1);
    for (size_t i = 0; i < length; i++)
        label[i] = label[i] >= ' ' && label[i] <= '~' ? label[i] : '?';
    memset(label + length, 0, QUOIT_SHARE_LABEL_BYTES - length);
}
