/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/control.h"

int quoit_control_bytes(uint32_t kind)
{
    switch (kind) {
    case QUOIT_CONTROL_HOST_READY:
    case QUOIT_CONTROL_WAITED:
    case QUOIT_CONTROL_GO:
    case QUOIT_CONTROL_LEAVE:
    case QUOIT_CONTROL_LEAVING:
    case QUOIT_CONTROL_LAUNCHER_LOST:
        return 0;
    case QUOIT_CONTROL_HOST_FINALIZED:
    case QUOIT_CONTROL_LEFT:
        return (int)sizeof(struct quoit_control_left);
    case QUOIT_CONTROL_ELSEWHERE:
        return (int)sizeof(struct quoit_control_elsewhere);
    case QUOIT_CONTROL_STILL:
        return (int)sizeof(struct quoit_rounds_question);
    case QUOIT_CONTROL_STILL_SEEN:
        return (int)sizeof(struct quoit_rounds_answer);
    case QUOIT_CONTROL_END:
        return (int)sizeof(int32_t);
    case QUOIT_CONTROL_SILENCE:
        return (int)sizeof(struct quoit_control_silence);
    default:
        return -1;
    }
}

bool quoit_control_may_be_lost(uint32_t kind)
{
    return kind == QUOIT_CONTROL_LEAVING || kind == QUOIT_CONTROL_ELSEWHERE || kind == QUOIT_CONTROL_STILL ||
           kind == QUOIT_CONTROL_STILL_SEEN || kind == QUOIT_CONTROL_SILENCE;
}
