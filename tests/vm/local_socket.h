/* SPDX-License-Identifier: BSD-3-Clause */
/* Stream sockets that are found by a path. Errors: -1, and errno. */
#ifndef QUOIT_VM_LOCAL_SOCKET_H
#define QUOIT_VM_LOCAL_SOCKET_H

/* Takes the place of a socket that an earlier process has left there. */
int local_socket_listen(const char *path);
int local_socket_connect(const char *path);

#endif
