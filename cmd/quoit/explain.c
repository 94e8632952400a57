/* SPDX-License-Identifier: BSD-3-Clause */
/* quoit explain - the page of a message's code, from the files of docs/messages, which are installed: one file a code,
 * named CODE.md, whose first line is "# CODE: title". The pages are Markdown of a small kind: headings, paragraphs,
 * blocks between lines of three backticks, and spans of code. */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "command.h"
#include "prefix.h"

#define CODE_BYTES 6 /* "Q0101" and the end */
#define LINE_BYTES 512
#define NEAR_MAX   5
#define NEAR_LEAST 3 /* digits of four that are the same */

static const char help[] =
    "usage: quoit explain [CODE]...\n"
    "       quoit explain WORD...\n"
    "\n"
    "Prints what a message means by its code, such as Q0116: the cause, an example, and the cure.\n"
    "For words, such as deadlock: the codes of the messages that are about all of them, each with a line; without a\n"
    "word: all codes.\n"
    "\n"
    "  --help                   print this\n";

/* "Q0116" of "Q0116", "q0116" and "[Q0116]". False: it has not the form of a code. */
static bool parse_code(const char *word, char code_out[CODE_BYTES])
{
    size_t length = strlen(word);
    bool has_brackets = length == CODE_BYTES + 1 && word[0] == '[' && word[length - 1] == ']';
    if (!has_brackets && length != CODE_BYTES - 1)
        return false;
    memmove(code_out, word + has_brackets, CODE_BYTES - 1); /* is_page() parses in place */
    code_out[0] = (char)toupper((unsigned char)code_out[0]);
    code_out[CODE_BYTES - 1] = '\0';
    return code_out[0] == 'Q' && strspn(code_out + 1, "0123456789") == CODE_BYTES - 2;
}

static int is_page(const struct dirent *entry)
{
    char code[CODE_BYTES];
    snprintf(code, sizeof code, "%.5s", entry->d_name);
    return strcmp(entry->d_name + strlen(code), ".md") == 0 && parse_code(code, code);
}

static FILE *open_page(const char *folder, const char *name)
{
    char path[PATH_MAX + NAME_MAX + 2];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *page = fopen(path, "r");
    if (!page)
        perror(path);
    return page;
}

/* The first bytes of the text, without the backticks of spans. */
static void print_text(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (text[i] != '`')
            putchar(text[i]);
}

/* What is not a block of code: bold headings where `emphasis` is, a terminal. */
static void print_prose(const char *line, bool emphasis)
{
    size_t level = strspn(line, "#");
    const char *text = level > 0 && line[level] == ' ' ? line + level + 1 : line;
    if (text == line || !emphasis) {
        print_text(text, strlen(text));
    } else {
        printf("\033[1m");
        print_text(text, strcspn(text, "\n"));
        printf("\033[0m\n");
    }
}

/* A block is indented; the lines of backticks around it are left out. */
static void print_page(FILE *page, bool emphasis)
{
    char line[LINE_BYTES];
    bool in_block = false;
    while (fgets(line, sizeof line, page)) {
        if (strncmp(line, "```", 3) == 0)
            in_block = !in_block;
        else if (in_block)
            printf("%s%s", line[0] == '\n' ? "" : "    ", line);
        else
            print_prose(line, emphasis);
    }
}

/* Whether a word of the line begins so, in capitals or not. */
static bool has_word(const char *line, const char *word)
{
    for (const char *at = line; (at = strcasestr(at, word)); at++)
        if (at == line || !isalnum((unsigned char)at[-1]))
            return true;
    return false;
}

/* Whether all of the words stand in the page, each anywhere. */
static bool has_words(FILE *page, char *const *words, int count)
{
    char line[LINE_BYTES];
    for (int i = 0; i < count; i++) {
        bool is_found = false;
        rewind(page);
        while (!is_found && fgets(line, sizeof line, page))
            is_found = has_word(line, words[i]);
        if (!is_found)
            return false;
    }
    return true;
}

/* A line for each page in which all of the words stand. Returns whether there is one. */
static bool list(const char *folder, struct dirent **entries, int count, char *const *words, int word_count)
{
    bool is_found = false;
    for (int i = 0; i < count; i++) {
        char line[LINE_BYTES] = "";
        FILE *page = open_page(folder, entries[i]->d_name);
        if (!page)
            continue;
        if (fgets(line, sizeof line, page) && strncmp(line, "# ", 2) == 0 && has_words(page, words, word_count)) {
            printf("%.*s", CODE_BYTES - 1, line + 2);
            const char *title = line + 2 + CODE_BYTES; /* behind the colon */
            print_text(title, strlen(title));
            is_found = true;
        }
        fclose(page);
    }
    return is_found;
}

static void report_nothing(char *const *words, int count)
{
    char text[LINE_BYTES] = "";
    size_t used = 0;
    for (int i = 0; i < count && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? " " : "", words[i]);
    quoit_say(
        "no message is about \"%s\"; quoit explain lists all, quoit docs find-a-bug says what finds which trouble",
        text);
}

/* Reports that there is no such code, with those that differ in one digit. */
static void report_unknown(const char *code, struct dirent **entries, int count)
{
    char near[NEAR_MAX * (CODE_BYTES + 1) + 1] = "";
    int found = 0;
    for (int i = 0; i < count && found < NEAR_MAX; i++) {
        int same = 0;
        for (int k = 1; k < CODE_BYTES - 1; k++)
            same += code[k] == entries[i]->d_name[k];
        if (same >= NEAR_LEAST)
            sprintf(near + strlen(near), "%s%.5s", found++ ? ", " : "", entries[i]->d_name);
    }
    quoit_say("there is no message %s; quoit explain lists all%s%s", code, found ? "; near it: " : "", near);
}

/* Returns whether there is such a page. */
static bool explain(const char *folder, const char *code, struct dirent **entries, int count)
{
    for (int i = 0; i < count; i++)
        if (strncmp(entries[i]->d_name, code, CODE_BYTES - 1) == 0) {
            const char *no_colour = getenv("NO_COLOR");
            FILE *page = open_page(folder, entries[i]->d_name);
            if (page) {
                print_page(page, isatty(STDOUT_FILENO) && !(no_colour && no_colour[0]));
                fclose(page);
            }
            return page != NULL;
        }
    report_unknown(code, entries, count);
    return false;
}

int command_explain(int argc, char **argv)
{
    char folder[PATH_MAX], code[CODE_BYTES];
    struct dirent **entries;
    int status = 0;
    bool are_codes = argc > 1;
    for (int i = 1; i < argc; i++) {
        are_codes &= parse_code(argv[i], code);
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            fputs(help, stdout);
            return 0;
        }
        if (argv[i][0] == '\0') {
            quoit_say("\"\" is neither a code, such as Q0116, nor a word; quoit explain lists all codes");
            return 2;
        }
    }
    if (!prefix_find(QUOIT_DATA_FOLDER "/quoit/messages", folder))
        return 1;
    int count = scandir(folder, &entries, is_page, alphasort);
    if (count < 0) {
        perror(folder);
        return 1;
    }
    for (int i = 1; i < argc && are_codes; i++) {
        parse_code(argv[i], code);
        if (i > 1)
            putchar('\n');
        status |= !explain(folder, code, entries, count);
    }
    if (!are_codes && !list(folder, entries, count, argv + 1, argc - 1)) {
        report_nothing(argv + 1, argc - 1);
        status = 1;
    }
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    return status;
}
