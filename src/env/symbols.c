/* SPDX-License-Identifier: BSD-3-Clause */
#include "env/symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_BYTES (QUOIT_SYMBOL_TEXT_BYTES - 30) /* the offset behind it has up to 20 digits */

static bool lies_within(const struct quoit_symbols *symbols, uint64_t offset, uint64_t bytes)
{
    return offset <= symbols->file_bytes && bytes <= symbols->file_bytes - offset;
}

/* Takes a section if it is a table of symbols. */
static bool take_table(struct quoit_symbols *symbols, const Elf64_Ehdr *header, const Elf64_Shdr *table)
{
    Elf64_Shdr names;
    if (table->sh_link >= header->e_shnum)
        return false;
    memcpy(&names, symbols->file + header->e_shoff + table->sh_link * sizeof names, sizeof names);
    if (!lies_within(symbols, table->sh_offset, table->sh_size) ||
        !lies_within(symbols, names.sh_offset, names.sh_size))
        return false;
    symbols->table = symbols->file + table->sh_offset;
    symbols->count = table->sh_size / sizeof(Elf64_Sym);
    symbols->names = symbols->file + names.sh_offset;
    symbols->names_bytes = names.sh_size;
    return true;
}

static void find_table(struct quoit_symbols *symbols)
{
    static const uint32_t kinds[] = {SHT_SYMTAB, SHT_DYNSYM};
    Elf64_Ehdr header;
    if (symbols->file_bytes < sizeof header)
        return;
    memcpy(&header, symbols->file, sizeof header);
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_shentsize != sizeof(Elf64_Shdr) ||
        !lies_within(symbols, header.e_shoff, (uint64_t)header.e_shnum * sizeof(Elf64_Shdr)))
        return;
    for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++) {
        for (uint32_t i = 0; i < header.e_shnum; i++) {
            Elf64_Shdr section;
            memcpy(&section, symbols->file + header.e_shoff + i * sizeof section, sizeof section);
            if (section.sh_type == kinds[kind] && take_table(symbols, &header, &section))
                return;
        }
    }
}

void quoit_symbols_open(struct quoit_symbols *symbols_out, const char *path)
{
    struct stat facts;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* of any kind */
    *symbols_out = (struct quoit_symbols){0};
    if (fd >= 0 && fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size > 0) {
        void *file = mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (file != MAP_FAILED) {
            symbols_out->file = file;
            symbols_out->file_bytes = (size_t)facts.st_size;
            find_table(symbols_out);
        }
    }
    if (fd >= 0)
        close(fd);
}

void quoit_symbols_close(struct quoit_symbols *symbols)
{
    if (symbols->file)
        munmap((void *)(uintptr_t)symbols->file, symbols->file_bytes);
    *symbols = (struct quoit_symbols){0};
}

bool quoit_symbols_get(const struct quoit_symbols *symbols, size_t index, struct quoit_symbol *symbol_out)
{
    Elf64_Sym symbol;
    memcpy(&symbol, symbols->table + index * sizeof symbol, sizeof symbol);
    unsigned type = ELF64_ST_TYPE(symbol.st_info);
    if ((type != STT_OBJECT && type != STT_FUNC) || symbol.st_size == 0 || symbol.st_shndx == SHN_UNDEF ||
        symbol.st_name >= symbols->names_bytes)
        return false;
    const char *name = symbols->names + symbol.st_name;
    *symbol_out = (struct quoit_symbol){symbol.st_value, symbol.st_size, name, type == STT_FUNC};
    return name[0] != '\0' && memchr(name, '\0', symbols->names_bytes - symbol.st_name);
}

bool quoit_symbols_find(const struct quoit_symbols *symbols, uint64_t address, bool is_function,
                        struct quoit_symbol *symbol_out)
{
    for (size_t i = 0; i < symbols->count; i++)
        if (quoit_symbols_get(symbols, i, symbol_out) && symbol_out->is_function == is_function &&
            address - symbol_out->address < symbol_out->bytes)
            return true;
    return false;
}

/* Names of C++ variables, as the Itanium ABI encodes them: read as far as scopes without templates go. */
struct cxx_name {
    const char *at; /* what is not read yet */
    char *text;     /* NAME_BYTES; what was read */
    size_t used;
};

/* Of a scope or a variable: its length and its letters. */
static bool take_identifier(struct cxx_name *name)
{
    char *letters;
    const char *length = name->at + (name->at[0] == 'L'); /* of a file alone */
    if (length[0] < '1' || length[0] > '9')
        return false;
    unsigned long count = strtoul(length, &letters, 10);
    if (count > strlen(letters))
        return false;
    bool is_nameless = strncmp(letters, "_GLOBAL__N_", 11) == 0;
    name->used += (size_t)snprintf(name->text + name->used, NAME_BYTES - name->used, "%s%.*s", name->used ? "::" : "",
                                   is_nameless ? 21 : (int)count, is_nameless ? "(anonymous namespace)" : letters);
    name->at = letters + count;
    return name->used < NAME_BYTES;
}

static bool take_scopes(struct cxx_name *name)
{
    bool has_several = name->at[0] == 'N';
    name->at += has_several;
    do
        if (!take_identifier(name))
            return false;
    while (has_several && name->at[0] != 'E');
    name->at += has_several;
    return true;
}

/* Of a function that was read, the parameters, which no name here shows, and a variable in it; behind that a number if
 * it has several of this name. */
static bool take_local(struct cxx_name *name)
{
    name->used += (size_t)snprintf(name->text + name->used, NAME_BYTES - name->used, "()");
    const size_t used = name->used;
    for (const char *end = strchr(name->at, 'E'); end && used < NAME_BYTES; end = strchr(end + 1, 'E')) {
        name->at = end + 1;
        name->used = used;
        if (take_identifier(name) && name->at[strspn(name->at, "_0123456789")] == '\0')
            return true;
    }
    return false;
}

static bool take_cxx(const char *linker_name, char text_out[NAME_BYTES])
{
    struct cxx_name name = {.at = linker_name + 2, .text = text_out};
    bool is_local = name.at[0] == 'Z';
    name.at += is_local;
    return take_scopes(&name) && (is_local ? take_local(&name) : name.at[0] == '\0');
}

void quoit_symbol_text(const struct quoit_symbol *symbol, uint64_t address, char text_out[QUOIT_SYMBOL_TEXT_BYTES])
{
    char name[NAME_BYTES];
    uint64_t into = address - symbol->address;
    if (strncmp(symbol->name, "_Z", 2) != 0 || !take_cxx(symbol->name, name)) {
        size_t chars = 1 + strcspn(symbol->name + 1, "."); /* a name may begin with a dot */
        snprintf(name, NAME_BYTES, "%.*s", chars < NAME_BYTES ? (int)chars : NAME_BYTES, symbol->name);
    }
    snprintf(text_out, QUOIT_SYMBOL_TEXT_BYTES, into ? "%s + %llu byte%s" : "%s", name, (unsigned long long)into,
             into == 1 ? "" : "s");
}

bool quoit_symbols_name(const char *path, uint64_t address, char text_out[QUOIT_SYMBOL_TEXT_BYTES])
{
    struct quoit_symbols symbols;
    struct quoit_symbol variable;
    quoit_symbols_open(&symbols, path);
    bool is_found = quoit_symbols_find(&symbols, address, false, &variable);
    if (is_found)
        quoit_symbol_text(&variable, address, text_out);
    quoit_symbols_close(&symbols);
    return is_found;
}
