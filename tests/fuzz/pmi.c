/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: what a launcher says over PMI is taken in bounds, and refused if it is no answer. Method: a PE that starts finds
 * a socket on which the input stands already, and then its end. Input: the version asked for, then what the launcher
 * says. */
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "boot/exchange.h"
#include "boot/pmi_wire.h"
#include "fuzz.h"

static void parse(const char *text)
{
    char value[64], host[16], port[8];
    for (int version = 1; version <= 2; version++) {
        bool is_there = quoit_pmi_value(text, version, "value", value, sizeof value);
        must(!is_there || strlen(value) < sizeof value);
        must(!is_there || !strchr(value, version == 2 ? ';' : ' '));
        quoit_pmi_number(text, version, "rc", 0);
        quoit_pmi_is(text, version, "put_result");
    }
    must(!quoit_pmi_port(text, host, sizeof host, port, sizeof port) || strlen(port) < sizeof port);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct quoit_exchange exchange = {.ops = &quoit_exchange_pmi};
    char value[QUOIT_EXCHANGE_BYTES], number[16];
    int ends[2];
    if (bytes < 1)
        return 0;
    char *text = fuzz_text(data + 1, bytes - 1);
    parse(text);
    free(text);
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    must(bytes == 1 || send(ends[1], data + 1, bytes - 1, MSG_DONTWAIT) >= 0);
    shutdown(ends[1], SHUT_WR);
    snprintf(number, sizeof number, "%d", ends[0]);
    setenv("PMI_FD", number, 1);
    setenv("PMI_RANK", "0", 1);
    setenv("PMI_SIZE", "2", 1);
    const struct quoit_exchange_ops *ops = data[0] & 1 ? &quoit_exchange_pmi2 : &quoit_exchange_pmi;
    if (ops->open(&exchange) == QUOIT_OK) {
        must(exchange.rank < exchange.size);
        if (ops->put(&exchange, 0, "x") == QUOIT_OK && ops->fence(&exchange) == QUOIT_OK &&
            ops->get(&exchange, 1, 0, value) == QUOIT_OK)
            must(strlen(value) < sizeof value);
    }
    ops->close(&exchange);
    close(ends[0]);
    close(ends[1]);
    return 0;
}
