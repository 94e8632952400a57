/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: variables and functions of a program are found by any address in them and have their names of the source; no
 * file, however damaged, does harm. Method: this program's own file, by what its variables' addresses are; copies of it
 * that are cut off or have random bytes in their headers and tables. Seed: QUOIT_SEED. */
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/prng.h"
#include "env/symbols.h"

#define OWN     "/proc/self/exe"
#define DAMAGES 300

static long of_file[5];
long of_program[3];

static int take_base(struct dl_phdr_info *info, size_t bytes, void *base)
{
    (void)bytes;
    *(uintptr_t *)base = info->dlpi_addr;
    return 1; /* the first is the program */
}

static uint64_t in_file(const void *address)
{
    uintptr_t base = 0;
    dl_iterate_phdr(take_base, &base);
    return (uintptr_t)address - base;
}

static void expect(const void *address, const char *expected)
{
    char text[QUOIT_SYMBOL_TEXT_BYTES];
    assert_true(quoit_symbols_name(OWN, in_file(address), text));
    assert_string_equal(text, expected);
}

static void test_names(void **state)
{
    static long of_function[4];
    char text[QUOIT_SYMBOL_TEXT_BYTES];
    (void)state;
    expect(of_file, "of_file");
    expect((char *)of_file + sizeof of_file - 1, "of_file + 39 bytes");
    expect((char *)of_file + 1, "of_file + 1 byte");
    expect(&of_program[2], "of_program + 16 bytes");
    expect(of_function, "of_function");
    expect(&of_function[3], "of_function + 24 bytes");
    assert_false(quoit_symbols_name(OWN, in_file((void *)&expect), text)); /* a function is no variable */
    assert_false(quoit_symbols_name(OWN, UINT64_MAX, text));
    assert_false(quoit_symbols_name("/nowhere", in_file(of_file), text));
    assert_false(quoit_symbols_name("/dev/null", in_file(of_file), text));
    assert_false(quoit_symbols_name("/proc/self", in_file(of_file), text));
}

static void test_functions(void **state)
{
    struct quoit_symbols symbols;
    struct quoit_symbol symbol;
    (void)state;
    quoit_symbols_open(&symbols, OWN);
    assert_true(quoit_symbols_find(&symbols, in_file((void *)&test_functions) + 1, true, &symbol));
    assert_string_equal(symbol.name, "test_functions");
    assert_int_equal(symbol.address, in_file((void *)&test_functions));
    assert_false(quoit_symbols_find(&symbols, in_file(of_file), true, &symbol));
    quoit_symbols_close(&symbols);
    assert_null(symbols.file);
}

static void test_other_names(void **state)
{
    static const char *const names[][2] = {
        {"buf", "buf"},
        {"buf.12", "buf"},
        {"buf.lto_priv.0", "buf"},
        {".hidden.3", ".hidden"},
        {"_Zoom", "_Zoom"},
        {"_Z", "_Z"},
        {"_ZL3buf", "buf"},
        {"_ZN5space5innerE", "space::inner"},
        {"_ZN12_GLOBAL__N_13bufE", "(anonymous namespace)::buf"},
        {"_ZZ1fiE3buf", "f()::buf"},
        {"_ZZ1fPKcE3buf_0", "f()::buf"},
        {"_ZZ1fvE3buf__12_", "f()::buf"},
        {"_ZZL4stopR3ENDE3ENE", "stop()::ENE"},
        {"_ZZN5space5Class6methodEiE3buf", "space::Class::method()::buf"},
        {"_ZN3boxIiE4itemE", "_ZN3boxIiE4itemE"},
        {"_ZN3box", "_ZN3box"},
        {"_ZL99buf", "_ZL99buf"},
        {"_ZL99999999999999999999999buf", "_ZL99999999999999999999999buf"},
        {"_ZZ1fvE", "_ZZ1fvE"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char text[QUOIT_SYMBOL_TEXT_BYTES];
        const struct quoit_symbol symbol = {.address = 64, .bytes = 16, .name = names[i][0]};
        quoit_symbol_text(&symbol, 64, text);
        assert_string_equal(text, names[i][1]);
    }
}

static void test_long_name(void **state)
{
    char text[QUOIT_SYMBOL_TEXT_BYTES], name[2 * QUOIT_SYMBOL_TEXT_BYTES];
    const char *const beginnings[] = {"", "_ZL90", "_ZN90", "_ZZ90"};
    (void)state;
    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++) {
        const struct quoit_symbol symbol = {.address = 1, .bytes = UINT64_MAX, .name = name};
        memset(name, 'n', sizeof name);
        memcpy(name, beginnings[i], strlen(beginnings[i]));
        name[sizeof name - 1] = '\0';
        quoit_symbol_text(&symbol, 0, text); /* an offset of all digits */
        assert_memory_equal(text, name, 32);
        assert_string_equal(strchr(text, '+'), "+ 18446744073709551615 bytes");
    }
}

/* Looks up everything in a file of these bytes. */
static void look(const char *bytes, size_t count, uint64_t address)
{
    char path[64], text[QUOIT_SYMBOL_TEXT_BYTES];
    int fd = memfd_create("symbols_test", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, count), count);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    struct quoit_symbols symbols;
    struct quoit_symbol symbol;
    quoit_symbols_open(&symbols, path);
    size_t lengths = 0;
    for (size_t i = 0; i < symbols.count; i++)
        if (quoit_symbols_get(&symbols, i, &symbol))
            lengths += strlen(symbol.name);
    assert_true(lengths <= symbols.count * count);
    quoit_symbols_close(&symbols);
    (void)quoit_symbols_name(path, address, text);
    close(fd);
}

static void damage(char *bytes, size_t from, size_t count, struct quoit_prng *prng)
{
    for (uint64_t i = quoit_prng_next(prng) % 4 + 1; i > 0; i--)
        bytes[from + quoit_prng_next(prng) % count] ^= (char)(1u << quoit_prng_next(prng) % 8);
}

static void test_damaged_files(void **state)
{
    const char *seed = getenv("QUOIT_SEED");
    struct quoit_prng prng = {.state = seed ? strtoull(seed, NULL, 0) : 30};
    struct quoit_symbols own;
    (void)state;
    print_message("seed %llu\n", (unsigned long long)prng.state);
    quoit_symbols_open(&own, OWN);
    assert_true(own.count > 0);
    Elf64_Ehdr header;
    memcpy(&header, own.file, sizeof header);
    size_t sections_bytes = header.e_shnum * sizeof(Elf64_Shdr), table_at = (size_t)(own.table - own.file);
    char *copy = malloc(own.file_bytes);
    assert_non_null(copy);
    for (int i = 0; i < DAMAGES; i++) {
        memcpy(copy, own.file, own.file_bytes);
        size_t count = i % 4 == 0 ? 1 + quoit_prng_next(&prng) % own.file_bytes : own.file_bytes;
        if (i % 4 == 1)
            damage(copy, 0, sizeof header, &prng);
        else if (i % 4 == 2)
            damage(copy, header.e_shoff, sections_bytes, &prng);
        else if (i % 4 == 3)
            damage(copy, table_at, own.count * sizeof(Elf64_Sym), &prng);
        look(copy, count, in_file(of_file));
    }
    free(copy);
    quoit_symbols_close(&own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),     cmocka_unit_test(test_functions),     cmocka_unit_test(test_other_names),
        cmocka_unit_test(test_long_name), cmocka_unit_test(test_damaged_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
