# SPDX-License-Identifier: BSD-3-Clause
# Puts the options, as the program tells them, into the manual's template.
execute_process(COMMAND ${PROGRAM} --man-options OUTPUT_VARIABLE OPTIONS COMMAND_ERROR_IS_FATAL ANY)
configure_file(${TEMPLATE} ${OUTPUT} @ONLY)
