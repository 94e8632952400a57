/* SPDX-License-Identifier: BSD-3-Clause */
/* tuned.h - the user's files that `quoit tune` writes and every job looks at: where they are, and what is in them.
 *
 * A file is text, words separated by single spaces. It is in $XDG_CONFIG_HOME/quoit, else in $HOME/.config/quoit.
 *
 * Threads: any. Errors: a file that cannot be read is described in words that follow its name.
 */
#ifndef QUOIT_LOCAL_TUNED_H
#define QUOIT_LOCAL_TUNED_H

#include <stdbool.h>
#include <stddef.h>

#define QUOIT_TUNED_FILE_BYTES    1024u /* the largest file that is read */
#define QUOIT_TUNED_NAME_BYTES    512u
#define QUOIT_TUNED_PROBLEM_BYTES (QUOIT_TUNED_NAME_BYTES + 256)

/* The path of the file of this name. False: neither variable is set, the name has a "/", or it is too long. */
bool quoit_tuned_file(const char *name, char path_out[QUOIT_TUNED_NAME_BYTES]);

enum quoit_tuned_found { QUOIT_TUNED_READ, QUOIT_TUNED_MISSING, QUOIT_TUNED_UNUSABLE };
/* MISSING also where this user cannot tell: his home may belong to another one. UNUSABLE: the problem is described. */
enum quoit_tuned_found quoit_tuned_read(const char *path, char text_out[QUOIT_TUNED_FILE_BYTES + 2],
                                        char problem_out[QUOIT_TUNED_PROBLEM_BYTES]);

/* Takes one word and the character that must follow it. NULL: the text begins with something else. */
const char *quoit_tuned_word(const char *text, const char *word, char after);

#endif
