/* SPDX-License-Identifier: BSD-3-Clause */
/* quoit docs - opens the documentation site, which is installed as HTML where Sphinx was there when Quoit was built. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "command.h"
#include "prefix.h"

static const char help[] =
    "usage: quoit docs [PAGE]\n"
    "\n"
    "Opens the documentation in a browser, from this installation, without a network; where there is no\n"
    "browser it prints the path of the page. PAGE is the name of a page, such as learn, find-a-bug, api,\n"
    "shmem_put or Q0116; without it the first.\n"
    "\n"
    "  --help                   print this\n";

/* Letters, digits, "-", "_" and single "/": what the names of pages are made of. */
static bool is_page_name(const char *name)
{
    for (const char *at = name; *at; at++)
        if (!isalnum((unsigned char)*at) && !strchr("-_", *at) && !(*at == '/' && at > name && at[-1] != '/'))
            return false;
    return name[0] != '\0';
}

/* A folder's name is that of its first page, and pages below folders need no folder: Q0116, shmem_put. */
static bool find_page(const char *page, char path_out[PATH_MAX])
{
    static const struct {
        const char *before, *behind;
    } places[] = {{"", ""}, {"", "/index"}, {"", "/README"}, {"messages/", ""}, {"api/", ""}, {"design/", ""}};
    char below[PATH_MAX];
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (snprintf(below, sizeof below, "%s/html/%s%s%s.html", QUOIT_DOC_FOLDER, places[i].before, page,
                     places[i].behind) < PATH_MAX &&
            prefix_has(below, path_out))
            return true;
    return false;
}

/* xdg-open takes the user's browser, also that of the variable BROWSER. */
static bool open_in_browser(char *path)
{
    char opener[PATH_MAX];
    static const char *const displays[] = {"DISPLAY", "WAYLAND_DISPLAY", "BROWSER"};
    bool has_display = false;
    for (size_t i = 0; i < sizeof displays / sizeof displays[0]; i++)
        has_display |= getenv(displays[i]) && *getenv(displays[i]);
    char *const words[] = {"xdg-open", path, NULL};
    return has_display && prefix_search(words[0], opener) && prefix_run(words, NULL, NULL) == 0;
}

int command_docs(int argc, char **argv)
{
    char path[PATH_MAX];
    const char *page = argc > 1 ? argv[1] : "index";
    if (strcmp(page, "--help") == 0 || strcmp(page, "-h") == 0) {
        fputs(help, stdout);
        return 0;
    }
    if (argc > 2 || !is_page_name(page)) {
        fputs(help, stderr);
        return 2;
    }
    if (!prefix_has(QUOIT_DOC_FOLDER "/html/index.html", path)) {
        quoit_say(
            "the documentation site is not in this installation (Debian: package quoit-doc; source: built where Sphinx "
            "is, docs/install.md); quoit explain and man work without it");
        if (prefix_has(QUOIT_DOC_FOLDER "/docs", path))
            puts(path); /* its pages as text */
        return 1;
    }
    if (!find_page(page, path)) {
        quoit_say("there is no page \"%s\"; quoit docs opens the first, which leads to all", page);
        return 1;
    }
    if (!open_in_browser(path))
        puts(path);
    return 0;
}
