/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads as assemblers write them, one of each kind that compilers use for shared data, and some that are not known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dsm/load.h"

static const struct {
    const char *text;
    size_t bytes;
    unsigned char code[15];
} loads[] = {
    {"mov rax, [rdi]", 8, {0x48, 0x8b, 0x07}},
    {"mov eax, [rdi]", 4, {0x8b, 0x07}},
    {"mov ax, [rdi]", 2, {0x66, 0x8b, 0x07}},
    {"mov al, [rdi]", 1, {0x8a, 0x07}},
    {"movzx eax, byte [rdi]", 1, {0x0f, 0xb6, 0x07}},
    {"movsx eax, word [rdi]", 2, {0x0f, 0xbf, 0x07}},
    {"movsxd rax, [rdi]", 4, {0x48, 0x63, 0x07}},
    {"add rax, [rdi]", 8, {0x48, 0x03, 0x07}},
    {"cmp eax, [rdi]", 4, {0x3b, 0x07}},
    {"cmp qword [rdi], 5", 8, {0x48, 0x83, 0x3f, 0x05}},
    {"cmp byte [rdi], 0", 1, {0x80, 0x3f, 0x00}},
    {"cmove rax, [rdi]", 8, {0x48, 0x0f, 0x44, 0x07}},
    {"imul eax, [rdi]", 4, {0x0f, 0xaf, 0x07}},
    {"rep movsb", 1, {0xf3, 0xa4}},
    {"rep movsq", 8, {0xf3, 0x48, 0xa5}},
    {"movss xmm0, [rdi]", 4, {0xf3, 0x0f, 0x10, 0x07}},
    {"movsd xmm0, [rdi]", 8, {0xf2, 0x0f, 0x10, 0x07}},
    {"mulsd xmm0, [rdi]", 8, {0xf2, 0x0f, 0x59, 0x07}},
    {"movups xmm0, [rdi]", 16, {0x0f, 0x10, 0x07}},
    {"movdqu xmm0, [rdi]", 16, {0xf3, 0x0f, 0x6f, 0x07}},
    {"movq xmm0, [rdi]", 8, {0xf3, 0x0f, 0x7e, 0x07}},
    {"ucomisd xmm0, [rdi]", 8, {0x66, 0x0f, 0x2e, 0x07}},
    {"vmovsd xmm0, [rdi]", 8, {0xc5, 0xfb, 0x10, 0x07}},
    {"vmovdqu ymm0, [rdi]", 32, {0xc5, 0xfe, 0x6f, 0x07}},
    {"vmovups ymm8, [r8]", 32, {0xc4, 0x41, 0x7c, 0x10, 0x00}},
    {"vmovd xmm8, [r8]", 4, {0xc4, 0x41, 0x79, 0x6e, 0x00}},
    {"vmovq xmm8, [r8]", 8, {0xc4, 0x41, 0xf9, 0x6e, 0x00}},
    {"vmovdqu64 zmm0, [rdi]", 64, {0x62, 0xf1, 0xfe, 0x48, 0x6f, 0x07}},
    {"vmovdqu8 zmm0{k1}, [rdi]", 1, {0x62, 0xf1, 0x7f, 0x49, 0x6f, 0x07}},
    {"vpbroadcastq ymm0, [rdi]", 1, {0xc4, 0xe2, 0x7d, 0x59, 0x07}},
    {"lock xadd [rdi], rax", 1, {0xf0, 0x48, 0x0f, 0xc1, 0x07}},
};

static void test_loads(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof loads / sizeof loads[0]; i++) {
        if (quoit_dsm_load_bytes(loads[i].code) != loads[i].bytes)
            fail_msg("%s: %zu bytes, but it loads %zu", loads[i].text, quoit_dsm_load_bytes(loads[i].code),
                     loads[i].bytes);
    }
}

/* Whatever the bytes are, the answer is one of the sizes, and no byte after the fifteenth counts. */
static void test_any_bytes(void **state)
{
    (void)state;
    uint64_t random = 88172645463325252u;
    for (int round = 0; round < 200000; round++) {
        unsigned char code[16];
        for (size_t i = 0; i < sizeof code; i++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            code[i] = (unsigned char)random;
        }
        size_t bytes = quoit_dsm_load_bytes(code);
        assert_true(bytes >= 1 && bytes <= 64 && (bytes & (bytes - 1)) == 0);
        code[15] ^= 0xff;
        assert_int_equal(quoit_dsm_load_bytes(code), bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_loads), cmocka_unit_test(test_any_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
