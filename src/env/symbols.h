/* SPDX-License-Identifier: BSD-3-Clause */
/* symbols.h - variables and functions of a program or library, by name.
 *
 * What it is: the symbol table of an ELF file of this machine's class; of a stripped file the dynamic one, which has
 * what is exported and imported. Addresses are as in the file: relative to where the loader puts it. The file is the
 * user's, so every offset is checked; it stays mapped until close, because the names are in it.
 *
 * Threads: any, each with a table of its own. Errors: a file that cannot be read has no symbols.
 */
#ifndef QUOIT_ENV_SYMBOLS_H
#define QUOIT_ENV_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QUOIT_SYMBOL_TEXT_BYTES 72

struct quoit_symbols {
    const char *file; /* NULL: none */
    size_t file_bytes;
    const char *table; /* `count` symbols */
    size_t count;
    const char *names;
    size_t names_bytes;
};

struct quoit_symbol {
    uint64_t address;
    uint64_t bytes;
    const char *name;
    bool is_function;
};

void quoit_symbols_open(struct quoit_symbols *symbols_out, const char *path);
void quoit_symbols_close(struct quoit_symbols *symbols);
/* Entry `index` of the table, below its count. False: neither a variable nor a function. */
bool quoit_symbols_get(const struct quoit_symbols *symbols, size_t index, struct quoit_symbol *symbol_out);
/* The variable, or the function, that contains an address. False: none does. */
bool quoit_symbols_find(const struct quoit_symbols *symbols, uint64_t address, bool is_function,
                        struct quoit_symbol *symbol_out);

/* The name as the source has it: "buf" of a static variable of a C function, which is buf.0 in the table, and
 * "f()::buf" of one of C++, which is _ZZ1fiE3buf; behind it " + 8 bytes" if the address is in the middle. A long name
 * is cut off; one of C++ with templates in it stays as it is in the table. */
void quoit_symbol_text(const struct quoit_symbol *symbol, uint64_t address, char text_out[QUOIT_SYMBOL_TEXT_BYTES]);
/* The text of the variable that contains an address of the file. False: none does. */
bool quoit_symbols_name(const char *path, uint64_t address, char text_out[QUOIT_SYMBOL_TEXT_BYTES]);

#endif
