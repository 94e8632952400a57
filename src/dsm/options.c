/* SPDX-License-Identifier: BSD-3-Clause */
#include "dsm/options.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

struct row {
    const char *variable;
    uint64_t start, least, most;
    const char *words, *sentence;
};

static const struct row rows[] = {
#define X(NAME, variable, start, least, most, words, sentence) {variable, start, least, most, words, sentence},
    QUOIT_DSM_OPTIONS(X)
#undef X
};

const char *quoit_dsm_option_variable(enum quoit_dsm_option option)
{
    return rows[option].variable;
}

const char *quoit_dsm_option_word(enum quoit_dsm_option option, uint64_t value, char *buffer)
{
    const char *words = rows[option].words;
    if (!words)
        return NULL;
    for (; value > 0 && words; value--) {
        words = strchr(words, ' ');
        words = words ? words + 1 : NULL;
    }
    if (!words)
        return NULL;
    snprintf(buffer, 32, "%.*s", (int)strcspn(words, " "), words);
    return buffer;
}

static bool read_word(enum quoit_dsm_option option, const char *text, uint64_t *value_out)
{
    char word[32];
    for (uint64_t value = 0; quoit_dsm_option_word(option, value, word); value++) {
        if (strcmp(word, text) == 0) {
            *value_out = value;
            return true;
        }
    }
    return false;
}

static bool read_number(const char *text, uint64_t *value_out)
{
    char *end;
    if (*text < '0' || *text > '9')
        return false;
    uint64_t value = strtoull(text, &end, 10);
    static const char letters[] = "KMGT";
    const char *letter = *end ? strchr(letters, *end) : NULL;
    int shift = letter ? (int)(letter - letters + 1) * 10 : 0;
    if (letter)
        end++;
    *value_out = value << shift;
    return *end == '\0' && *value_out >> shift == value;
}

static bool is_power(uint64_t value)
{
    return (value & (value - 1)) == 0;
}

static void read_one(struct quoit_dsm_options *options, enum quoit_dsm_option option, const char *text)
{
    const struct row *row = &rows[option];
    uint64_t value = 0;
    bool is_good = row->words ? read_word(option, text, &value) : read_number(text, &value);
    if (!is_good || value < row->least || value > row->most ||
        ((option == QUOIT_DSM_PAGE || option == QUOIT_DSM_LOG) && !is_power(value))) {
        if (row->words)
            quoit_say("dsm_init: %s is \"%s\", but one of these is needed: %s", row->variable, text, row->words);
        else
            quoit_say("dsm_init: %s is \"%s\", but it is %llu to %llu%s", row->variable, text,
                      (unsigned long long)row->least, (unsigned long long)row->most,
                      option == QUOIT_DSM_PAGE || option == QUOIT_DSM_LOG ? ", a power of two" : "");
        exit(2);
    }
    options->values[option] = value;
}

void quoit_dsm_options_read(struct quoit_dsm_options *options, char *const *environment)
{
    for (int i = 0; i < QUOIT_DSM_OPTION_COUNT; i++)
        options->values[i] = rows[i].start;
    for (; environment && *environment; environment++) {
        if (strncmp(*environment, "DSM_", 4) != 0)
            continue;
        size_t length = strcspn(*environment, "=");
        int option = 0;
        while (option < QUOIT_DSM_OPTION_COUNT &&
               (strncmp(rows[option].variable, *environment, length) != 0 || rows[option].variable[length] != '\0'))
            option++;
        if (option == QUOIT_DSM_OPTION_COUNT) {
            quoit_say("dsm_init: unknown variable %.*s; docs/dsm.md lists those there are", (int)length, *environment);
            exit(2);
        }
        read_one(options, option, *environment + length + 1);
    }
}

void quoit_dsm_option_row(enum quoit_dsm_option option, char *buffer, size_t bytes)
{
    const struct row *row = &rows[option];
    char word[32];
    if (quoit_dsm_option_word(option, row->start, word))
        snprintf(buffer, bytes, "| `%s` | %s | %s | %s |", row->variable, word, row->words, row->sentence);
    else
        snprintf(buffer, bytes, "| `%s` | %llu | %llu to %llu | %s |", row->variable, (unsigned long long)row->start,
                 (unsigned long long)row->least, (unsigned long long)row->most, row->sentence);
}
