/* SPDX-License-Identifier: BSD-3-Clause */
/* library.h - a shared library with variables of every kind, for library_data.c. */
#ifndef LIBRARY_H
#define LIBRARY_H

#define LIBRARY_WORDS 5000

/* Through a function, or the linker would copy the variables into the program. */
long *library_words(void);   /* [LIBRARY_WORDS]: 7, 0, 0, ... */
long *library_counter(void); /* 0 */
long *library_hidden(void);  /* a static inside a function: 11 */
long library_sum(void);      /* of the words, as the library itself reads them */
/* Calls of mmap, which the library replaces, that have not returned: 0. */
long library_mapping_count(void);

#endif
