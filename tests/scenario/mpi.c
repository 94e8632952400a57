/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program that is linked with MPI has among its symbols. */
__attribute__((visibility("default"))) int MPI_Init(int *argc, char ***argv);
int MPI_Init(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return 0;
}
