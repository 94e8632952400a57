/* SPDX-License-Identifier: BSD-3-Clause */
#include "help.h"
#include "base/text.h"
#include "base/version.h"

#include <stdio.h>
#include <string.h>

#define SWITCH_COLUMNS 30
#define NAMES_COLUMNS  116 /* about as wide as the sentences of the other sections */

/* "-n N", "--hosts H", or the variable where there is no option. */
static void format_switch(const struct quoit_option *option, char *text, size_t bytes)
{
    if (!option->name)
        snprintf(text, bytes, "%s", option->variable);
    else
        snprintf(text, bytes, "%s%s%s%s", strlen(option->name) == 1 ? "-" : "--", option->name,
                 option->placeholder[0] ? " " : "", option->placeholder);
}

/* Names only, for a section of rare options. */
static bool has_rare_options(int section)
{
    return section == QUOIT_SECTION_EMULATED || section == QUOIT_SECTION_NETWORK;
}

static void print_names(int section)
{
    int column = printf("%s: ", quoit_option_sections[section]);
    for (int i = 0; i < QUOIT_OPT_COUNT; i++) {
        const struct quoit_option *option = &quoit_options_table[i];
        if ((int)option->section != section || !option->name)
            continue;
        if (column + (int)strlen(option->name) > NAMES_COLUMNS)
            column = printf("\n  ") - 1;
        column += printf("--%s ", option->name);
    }
    printf("(man oshrun)\n");
}

static void print_help(void)
{
    printf("usage: oshrun [options] [--] program [args] [: [options] [--] program [args]] ...\n"
           "Runs an OpenSHMEM program, such as: oshrun -n 4 ./a.out   or on a ring: oshrun --hosts 5 -n 5 ./a.out\n");
    for (int section = 0; section < QUOIT_SECTION_COUNT; section++) {
        if (!has_rare_options(section) || !has_rare_options(section - 1))
            printf("\n");
        if (has_rare_options(section)) {
            print_names(section);
            continue;
        }
        printf("%s\n", quoit_option_sections[section]);
        for (int i = 0; i < QUOIT_OPT_COUNT; i++) {
            const struct quoit_option *option = &quoit_options_table[i];
            char text[80];
            if ((int)option->section != section || !option->name || i == QUOIT_OPT_MAN_OPTIONS) /* for packagers */
                continue;
            format_switch(option, text, sizeof text);
            printf("  %-*s %s\n", SWITCH_COLUMNS, text, option->sentence);
        }
    }
    printf("\nThe status is that of the first PE that failed (128+signal), 124 after --timeout, 2 for bad usage,\n"
           "126 and 127 for a program that cannot be run or found. Manual: man oshrun. Messages: quoit explain CODE, "
           "or a word\n");
}

static void print_options(const struct plan *plan)
{
    static const char *const sources[] = {"", "environment", "command line"};
    printf("%-20s %-24s %-12s %-8s %s\n", "OPTION", "VARIABLE", "VALUE NOW", "DEFAULT", "MEANING");
    for (int i = 0; i < QUOIT_OPT_COUNT; i++) {
        const struct quoit_option *option = &quoit_options_table[i];
        const struct quoit_option_value *value = &plan->options.values[i];
        char text[64], name[32] = "-";
        quoit_option_format(&plan->options, (enum quoit_option_id)i, text, sizeof text);
        quoit_text_clean(text, strlen(text));
        if (option->name)
            snprintf(name, sizeof name, "%s%s", strlen(option->name) == 1 ? "-" : "--", option->name);
        printf("%-20s %-24s %-12s %-8s %s", name, option->variable ? option->variable : "-", text[0] ? text : "-",
               option->fallback[0] ? option->fallback : "-", option->sentence);
        if (value->source != QUOIT_FROM_DEFAULT)
            printf(" (from the %s)", sources[value->source]);
        printf("\n");
    }
}

/* roff: a dash is a hyphen unless escaped, and a line must not begin with a dot. */
static void print_roff(const char *text)
{
    for (; *text; text++) {
        if (*text == '-')
            putchar('\\');
        if (*text == '\\')
            putchar('\\');
        putchar(*text);
    }
}

static void print_man_option(const struct quoit_option *option)
{
    char text[80];
    format_switch(option, text, sizeof text);
    printf(".TP\n.B ");
    print_roff(text);
    printf("\n");
    print_roff(option->sentence);
    printf(".\n");
    print_roff(option->paragraph);
    if (option->paragraph[0])
        printf("\n");
    printf("Read by ");
    print_roff(quoit_option_readers[option->reader]);
    printf(".");
    if (option->name && option->variable)
        printf(" Variable: %s.", option->variable);
    if (option->fallback[0])
        printf(" Default: %s.", option->fallback);
    printf("\n");
}

static void print_man(void)
{
    for (int section = 0; section < QUOIT_SECTION_COUNT; section++) {
        printf(".SS %s\n", quoit_option_sections[section]);
        for (int i = 0; i < QUOIT_OPT_COUNT; i++)
            if ((int)quoit_options_table[i].section == section)
                print_man_option(&quoit_options_table[i]);
    }
}

void help_answer(const struct plan *plan)
{
    if (plan_number(plan, QUOIT_OPT_HELP))
        print_help();
    else if (plan_number(plan, QUOIT_OPT_VERSION))
        printf("oshrun (Quoit) %s, OpenSHMEM 1.6\n", quoit_version()->text);
    else if (plan_number(plan, QUOIT_OPT_OPTIONS))
        print_options(plan);
    else
        print_man();
}
