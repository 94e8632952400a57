// SPDX-License-Identifier: BSD-3-Clause
// The C++ overloads pass the same program as the C11 selections: it is written in what both languages share.
#include "generic.c"
