# SPDX-License-Identifier: BSD-3-Clause
# ctest reads this before it starts a test of preset asan. glibc takes thread-local memory of libraries that are opened at run
# time from malloc. The sanitizer looks at the words ahead of such memory for its length if it begins 16 bytes into a page, as
# that of glibc 2.19 did, finds its own header, and LeakSanitizer dies of it at the end of the process. Without this watch it
# finds the memory through its dynamic linker.
if(NOT DEFINED ENV{ASAN_OPTIONS})
  set(ENV{ASAN_OPTIONS} intercept_tls_get_addr=0)
endif()
