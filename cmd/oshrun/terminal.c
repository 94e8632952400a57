/* SPDX-License-Identifier: BSD-3-Clause */
#include "terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

void terminal_open(struct terminal *terminal, pid_t home, uint32_t pe)
{
    *terminal = (struct terminal){.fd = open("/dev/tty", O_RDWR | O_CLOEXEC), .home = home, .pe = pe};
}

void terminal_renounce(const struct terminal *terminal)
{
    if (terminal->fd >= 0)
        ioctl(terminal->fd, TIOCNOTTY);
}

bool terminal_give(struct terminal *terminal, pid_t group)
{
    pid_t holder = terminal->fd < 0 ? -1 : tcgetpgrp(terminal->fd);
    if (holder == group && terminal->given_to == group)
        return true; /* its request came before the terminal did */
    if (holder < 0 || holder != terminal->home)
        return false;
    tcgetattr(terminal->fd, &terminal->modes);
    terminal->is_wanted = false;
    if (tcsetpgrp(terminal->fd, group) != 0)
        return false;
    terminal->given_to = group;
    return true;
}

void terminal_take_back(struct terminal *terminal)
{
    if (!terminal->given_to)
        return;
    terminal->given_to = 0;
    tcsetpgrp(terminal->fd, terminal->home);
    tcsetattr(terminal->fd, TCSANOW, &terminal->modes);
}
