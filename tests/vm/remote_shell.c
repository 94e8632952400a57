// SPDX-License-Identifier: BSD-3-Clause
/* A remote shell between the machines of a test, without keys, for oshrun --rsh.
 *
 * Use: remote_shell serve, on each machine; remote_shell ADDRESS COMMAND... runs a command there. Its standard input
 * and output are the connection; what it writes to standard error stays there. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PORT          5140
#define COMMAND_BYTES 8192
#define TRIES         300

static _Noreturn void die(const char *what)
{
    perror(what);
    exit(255);
}

static struct sockaddr_in address_of(const char *text)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    if (text && inet_pton(AF_INET, text, &address.sin_addr) != 1)
        die(text);
    return address;
}

static _Noreturn void run(int connection)
{
    char command[COMMAND_BYTES];
    size_t length = 0;
    while (length + 1 < sizeof command && read(connection, command + length, 1) == 1 && command[length] != '\n')
        length++;
    command[length] = 0;
    setsid();
    signal(SIGCHLD, SIG_DFL);
    dup2(connection, STDIN_FILENO);
    dup2(connection, STDOUT_FILENO);
    close(connection);
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    die("/bin/sh");
}

static _Noreturn void serve(void)
{
    const struct sockaddr_in any = address_of(NULL);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    signal(SIGCHLD, SIG_IGN);
    if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) != 0 ||
        bind(listener, (const struct sockaddr *)&any, sizeof any) != 0 || listen(listener, 8) != 0)
        die("listen");
    for (;;) {
        int connection = accept(listener, NULL, NULL);
        if (connection >= 0 && fork() == 0)
            run(connection);
        close(connection);
    }
}

/* False: the end of it. */
static int relay(int from, int to)
{
    char bytes[65536];
    ssize_t count = read(from, bytes, sizeof bytes);
    for (ssize_t done = 0, n; done < count; done += n)
        if ((n = write(to, bytes + done, (size_t)(count - done))) < 0)
            die("write");
    return count > 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "serve") == 0)
        serve();
    if (argc < 3) {
        fprintf(stderr, "use: remote_shell serve | ADDRESS COMMAND...\n");
        return 255;
    }
    const struct sockaddr_in address = address_of(argv[1]);
    int connection = -1;
    for (int i = 0; i < TRIES; i++, usleep(100000)) {
        connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(connection, (const struct sockaddr *)&address, sizeof address) == 0)
            break;
        close(connection);
        connection = -1;
    }
    if (connection < 0)
        die(argv[1]);
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    for (int i = 2; i < argc; i++)
        dprintf(connection, "%s%c", argv[i], i + 1 < argc ? ' ' : '\n');
    struct pollfd polls[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = connection, .events = POLLIN}};
    for (;;) {
        if (poll(polls, 2, -1) < 0)
            die("poll");
        if (polls[1].revents && !relay(connection, STDOUT_FILENO))
            return 0;
        if (polls[0].revents && !relay(STDIN_FILENO, connection)) {
            shutdown(connection, SHUT_WR);
            polls[0].fd = -1;
        }
    }
}
