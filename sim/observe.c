/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/observe.h"

const struct quoit_observer sim_observer = {
    .log_line = sim_log_line,
    .assertion = sim_assertion,
    .request_submitted = sim_request_submitted,
    .put_remade = sim_put_remade,
    .request_taken = sim_request_taken,
    .frame_received = sim_frame_received,
    .frame_taken = sim_frame_taken,
    .frame_sending = sim_frame_sending,
    .payload_leaving = sim_payload_leaving,
    .payload_left = sim_payload_left,
    .frame_executing = sim_frame_executing,
    .frame_executed = sim_frame_executed,
    .request_completing = sim_request_completing,
    .link_followed = sim_link_followed,
    .link_moved = sim_link_moved,
    .flag_seen = sim_flag_seen,
    .copied = sim_copied,
};
