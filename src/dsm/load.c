/* SPDX-License-Identifier: BSD-3-Clause */
#include "dsm/load.h"

#include <stdbool.h>
#include <stdint.h>

/* The prefixes of an opcode. pp as in VEX: 0 none, 1 for 66, 2 for F3, 3 for F2. */
struct prefixes {
    bool is_wide; /* REX.W */
    int pp, vector_bytes;
};

static size_t word_bytes(const struct prefixes *prefixes)
{
    if (prefixes->is_wide)
        return 8;
    return prefixes->pp == 1 ? 2 : 4;
}

/* Opcodes 0F xx that load a vector or a scalar of one, with SSE, VEX or EVEX. */
static size_t vector_load(unsigned char opcode, const struct prefixes *prefixes)
{
    size_t whole = (size_t)prefixes->vector_bytes;
    bool is_scalar = prefixes->pp >= 2;
    switch (opcode) {
    case 0x10: /* movups, movss */
    case 0x51: /* sqrt */
    case 0x58: /* add, mul, sub, min, div, max */
    case 0x59:
    case 0x5c:
    case 0x5d:
    case 0x5e:
    case 0x5f:
        if (is_scalar)
            return prefixes->pp == 2 ? 4 : 8;
        return whole;
    case 0x2a: /* cvtsi2sd */
        return is_scalar ? (prefixes->is_wide ? 8 : 4) : 8;
    case 0x2e: /* ucomiss, ucomisd, comiss, comisd */
    case 0x2f:
        return prefixes->pp == 1 ? 8 : 4;
    case 0x12: /* movlps, movhps */
    case 0x16:
        return is_scalar ? 1 : 8;
    case 0x6e: /* movd, movq */
        return prefixes->is_wide ? 8 : 4;
    case 0x7e: /* movq */
        return prefixes->pp == 2 ? 8 : 1;
    case 0x28: /* movaps, movdqa, movdqu, and, or, xor, add */
    case 0x6f:
    case 0x54:
    case 0x56:
    case 0x57:
    case 0xdb:
    case 0xeb:
    case 0xef:
    case 0xfc:
    case 0xfd:
    case 0xfe:
    case 0xd4:
    case 0x74:
        return whole;
    default:
        return 1;
    }
}

static size_t two_byte_load(unsigned char opcode, const struct prefixes *prefixes)
{
    if (opcode >= 0x40 && opcode <= 0x4f) /* cmov */
        return word_bytes(prefixes);
    switch (opcode) {
    case 0xb7: /* movzx, movsx from 16 bits */
    case 0xbf:
        return 2;
    case 0xaf: /* imul, bsf, bsr, popcnt */
    case 0xbc:
    case 0xbd:
    case 0xb8:
        return word_bytes(prefixes);
    default:
        return vector_load(opcode, prefixes);
    }
}

static size_t one_byte_load(unsigned char opcode, const struct prefixes *prefixes)
{
    bool is_arithmetic = opcode < 0x40 && ((opcode & 7) == 3 || (opcode & 7) == 1); /* add to cmp, of whole words */
    switch (opcode) {
    case 0x8b: /* mov */
    case 0x85: /* test */
    case 0x81: /* with an immediate: cmp */
    case 0x83:
    case 0xf7:
    case 0x69: /* imul */
    case 0x6b:
    case 0xa5: /* movs, cmps, lods, scas */
    case 0xa7:
    case 0xad:
    case 0xaf:
        return word_bytes(prefixes);
    case 0x63: /* movsxd */
    case 0xd8: /* x87, float and double */
    case 0xd9:
        return 4;
    case 0xdc:
    case 0xdd:
        return 8;
    default:
        return is_arithmetic ? word_bytes(prefixes) : 1;
    }
}

/* C5 and C4; only the map of 0F is known. */
static size_t vex_load(const unsigned char *code)
{
    const unsigned char *last = code + (code[0] == 0xc5 ? 1 : 2);
    struct prefixes prefixes = {code[0] == 0xc4 && (*last & 0x80), *last & 3, *last & 4 ? 32 : 16};
    if (code[0] == 0xc4 && (code[1] & 0x1f) != 1)
        return 1;
    return vector_load(last[1], &prefixes);
}

/* 62: of 512 bits at most, where no mask leaves elements out. */
static size_t evex_load(const unsigned char *code)
{
    bool is_masked = (code[3] & 7) != 0, is_broadcast = code[3] & 0x10;
    struct prefixes prefixes = {code[2] & 0x80, code[2] & 3, 16 << (code[3] >> 5 & 3)};
    if ((code[1] & 7) != 1 || is_masked || is_broadcast || (code[3] >> 5 & 3) == 3)
        return 1;
    return vector_load(code[4], &prefixes);
}

size_t quoit_dsm_load_bytes(const unsigned char *code)
{
    struct prefixes prefixes = {false, 0, 16};
    for (int i = 0; i < 4; i++, code++) {
        if (*code == 0x66)
            prefixes.pp = prefixes.pp == 0 ? 1 : prefixes.pp;
        else if (*code == 0xf3 || *code == 0xf2)
            prefixes.pp = *code == 0xf3 ? 2 : 3;
        else if (*code != 0x2e && *code != 0x36 && *code != 0x3e && *code != 0x64 && *code != 0x65 && *code != 0xf0)
            break;
    }
    if (*code == 0xc5 || *code == 0xc4)
        return vex_load(code);
    if (*code == 0x62)
        return evex_load(code);
    if ((*code & 0xf0) == 0x40)
        prefixes.is_wide = *code++ & 8;
    if (*code == 0x0f)
        return two_byte_load(code[1], &prefixes);
    return one_byte_load(*code, &prefixes);
}
