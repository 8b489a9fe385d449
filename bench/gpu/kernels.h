/* The benchmarks' kernels, as PTX.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef WEIR_BENCH_GPU_KERNELS_H
#define WEIR_BENCH_GPU_KERNELS_H

#define PTX_HEAD(version, target) ".version " version "\n.target " target "\n.address_size 64\n"

/* Nothing, with four pointers. */
#define PTX_EMPTY \
    ".visible .entry empty(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d)\n" \
    "{\n" \
    "  ret;\n" \
    "}\n"

/* y[i] = x[i] + 1 for the first n floats. */
#define PTX_ADD_ONE \
    ".visible .entry add_one(.param .u64 x, .param .u64 y, .param .u32 n)\n" \
    "{\n" \
    "  .reg .pred %p;\n" \
    "  .reg .b32 %r<5>;\n" \
    "  .reg .f32 %f<2>;\n" \
    "  .reg .b64 %rd<6>;\n" \
    "  ld.param.u64 %rd0, [x];\n" \
    "  ld.param.u64 %rd1, [y];\n" \
    "  ld.param.u32 %r0, [n];\n" \
    "  mov.u32 %r1, %ctaid.x;\n" \
    "  mov.u32 %r2, %ntid.x;\n" \
    "  mov.u32 %r3, %tid.x;\n" \
    "  mad.lo.s32 %r4, %r1, %r2, %r3;\n" \
    "  setp.ge.u32 %p, %r4, %r0;\n" \
    "  @%p bra DONE;\n" \
    "  mul.wide.u32 %rd2, %r4, 4;\n" \
    "  cvta.to.global.u64 %rd3, %rd0;\n" \
    "  cvta.to.global.u64 %rd4, %rd1;\n" \
    "  add.u64 %rd3, %rd3, %rd2;\n" \
    "  add.u64 %rd4, %rd4, %rd2;\n" \
    "  ld.global.f32 %f0, [%rd3];\n" \
    "  add.rn.f32 %f1, %f0, 0f3F800000;\n" \
    "  st.global.f32 [%rd4], %f1;\n" \
    "DONE:\n" \
    "  ret;\n" \
    "}\n"

/* Works for so many cycles; then y[0] = x[0]. */
#define PTX_SPIN \
    ".visible .entry spin(.param .u64 x, .param .u64 y, .param .u64 cycles)\n" \
    "{\n" \
    "  .reg .pred %p;\n" \
    "  .reg .b32 %r<2>;\n" \
    "  .reg .b64 %rd<7>;\n" \
    "  ld.param.u64 %rd0, [x];\n" \
    "  ld.param.u64 %rd1, [y];\n" \
    "  ld.param.u64 %rd2, [cycles];\n" \
    "  mov.u64 %rd3, %clock64;\n" \
    "AGAIN:\n" \
    "  mov.u64 %rd4, %clock64;\n" \
    "  sub.u64 %rd5, %rd4, %rd3;\n" \
    "  setp.lt.u64 %p, %rd5, %rd2;\n" \
    "  @%p bra AGAIN;\n" \
    "  mov.u32 %r0, %ctaid.x;\n" \
    "  setp.ne.u32 %p, %r0, 0;\n" \
    "  @%p bra DONE;\n" \
    "  cvta.to.global.u64 %rd0, %rd0;\n" \
    "  cvta.to.global.u64 %rd1, %rd1;\n" \
    "  ld.global.u32 %r1, [%rd0];\n" \
    "  st.global.u32 [%rd1], %r1;\n" \
    "DONE:\n" \
    "  ret;\n" \
    "}\n"

/* Works for so many cycles, and says at `took` how many cycles and how many ns of the device's clock it was at it. */
#define PTX_SPIN_MEASURED \
    ".visible .entry spin_measured(.param .u64 cycles, .param .u64 took)\n" \
    "{\n" \
    "  .reg .pred %p;\n" \
    "  .reg .b32 %r<3>;\n" \
    "  .reg .b64 %rd<9>;\n" \
    "  ld.param.u64 %rd0, [cycles];\n" \
    "  ld.param.u64 %rd1, [took];\n" \
    "  mov.u64 %rd2, %globaltimer;\n" \
    "  mov.u64 %rd3, %clock64;\n" \
    "AGAIN:\n" \
    "  mov.u64 %rd4, %clock64;\n" \
    "  sub.u64 %rd5, %rd4, %rd3;\n" \
    "  setp.lt.u64 %p, %rd5, %rd0;\n" \
    "  @%p bra AGAIN;\n" \
    "  mov.u64 %rd6, %globaltimer;\n" \
    "  sub.u64 %rd6, %rd6, %rd2;\n" \
    "  mov.u32 %r0, %ctaid.x;\n" \
    "  mov.u32 %r1, %tid.x;\n" \
    "  or.b32 %r2, %r0, %r1;\n" \
    "  setp.ne.u32 %p, %r2, 0;\n" \
    "  @%p bra DONE;\n" \
    "  cvta.to.global.u64 %rd1, %rd1;\n" \
    "  st.global.u64 [%rd1], %rd5;\n" \
    "  st.global.u64 [%rd1+8], %rd6;\n" \
    "DONE:\n" \
    "  ret;\n" \
    "}\n"

/* y[0] = x[0] < limit[0], of floats, as a byte. */
#define PTX_LESS \
    ".visible .entry less(.param .u64 x, .param .u64 limit, .param .u64 y)\n" \
    "{\n" \
    "  .reg .pred %p;\n" \
    "  .reg .b32 %r<1>;\n" \
    "  .reg .f32 %f<2>;\n" \
    "  .reg .b64 %rd<3>;\n" \
    "  ld.param.u64 %rd0, [x];\n" \
    "  ld.param.u64 %rd1, [limit];\n" \
    "  ld.param.u64 %rd2, [y];\n" \
    "  cvta.to.global.u64 %rd0, %rd0;\n" \
    "  cvta.to.global.u64 %rd1, %rd1;\n" \
    "  cvta.to.global.u64 %rd2, %rd2;\n" \
    "  ld.global.f32 %f0, [%rd0];\n" \
    "  ld.global.f32 %f1, [%rd1];\n" \
    "  setp.lt.f32 %p, %f0, %f1;\n" \
    "  selp.u32 %r0, 1, 0, %p;\n" \
    "  st.global.u8 [%rd2], %r0;\n" \
    "  ret;\n" \
    "}\n"

/* Numbers of a mixed index: the first `count` from `base` on. kind 0: f32 from -1 to 1; 1: the same, cut to bf16; 2:
 * bytes; 3: words of 16 bits with a sign, as s32. `element` of kernels.c says the same. */
#define PTX_RANDOM \
    ".visible .entry draw(.param .u64 to, .param .u32 count, .param .u32 base, .param .u32 kind)\n" \
    "{\n" \
    "  .reg .pred %p;\n" \
    "  .reg .b32 %r<10>;\n" \
    "  .reg .f32 %f<1>;\n" \
    "  .reg .b64 %rd<2>;\n" \
    "  ld.param.u64 %rd0, [to];\n" \
    "  ld.param.u32 %r0, [count];\n" \
    "  ld.param.u32 %r1, [base];\n" \
    "  ld.param.u32 %r2, [kind];\n" \
    "  cvta.to.global.u64 %rd0, %rd0;\n" \
    "  mov.u32 %r3, %ctaid.x;\n" \
    "  mov.u32 %r4, %ntid.x;\n" \
    "  mov.u32 %r5, %tid.x;\n" \
    "  mad.lo.s32 %r6, %r3, %r4, %r5;\n" \
    "  mov.u32 %r7, %nctaid.x;\n" \
    "  mul.lo.u32 %r7, %r7, %r4;\n" \
    "AGAIN:\n" \
    "  setp.ge.u32 %p, %r6, %r0;\n" \
    "  @%p bra DONE;\n" \
    "  add.u32 %r8, %r6, %r1;\n" \
    "  shr.u32 %r9, %r8, 16;\n" \
    "  xor.b32 %r8, %r8, %r9;\n" \
    "  mul.lo.u32 %r8, %r8, 0x7feb352d;\n" \
    "  shr.u32 %r9, %r8, 15;\n" \
    "  xor.b32 %r8, %r8, %r9;\n" \
    "  mul.lo.u32 %r8, %r8, 0x846ca68b;\n" \
    "  shr.u32 %r9, %r8, 16;\n" \
    "  xor.b32 %r8, %r8, %r9;\n" \
    "  setp.eq.u32 %p, %r2, 2;\n" \
    "  @%p bra BYTES;\n" \
    "  shr.s32 %r9, %r8, 16;\n" \
    "  setp.eq.u32 %p, %r2, 3;\n" \
    "  @%p bra WORDS;\n" \
    "  shr.s32 %r9, %r8, 8;\n" \
    "  cvt.rn.f32.s32 %f0, %r9;\n" \
    "  mul.rn.f32 %f0, %f0, 0f34000000;\n" \
    "  mov.b32 %r9, %f0;\n" \
    "  setp.eq.u32 %p, %r2, 1;\n" \
    "  @%p bra HALVES;\n" \
    "WORDS:\n" \
    "  mul.wide.u32 %rd1, %r6, 4;\n" \
    "  add.u64 %rd1, %rd0, %rd1;\n" \
    "  st.global.u32 [%rd1], %r9;\n" \
    "  bra NEXT;\n" \
    "HALVES:\n" \
    "  shr.u32 %r9, %r9, 16;\n" \
    "  mul.wide.u32 %rd1, %r6, 2;\n" \
    "  add.u64 %rd1, %rd0, %rd1;\n" \
    "  st.global.u16 [%rd1], %r9;\n" \
    "  bra NEXT;\n" \
    "BYTES:\n" \
    "  cvt.u64.u32 %rd1, %r6;\n" \
    "  add.u64 %rd1, %rd0, %rd1;\n" \
    "  st.global.u8 [%rd1], %r8;\n" \
    "NEXT:\n" \
    "  add.u32 %r6, %r6, %r7;\n" \
    "  bra AGAIN;\n" \
    "DONE:\n" \
    "  ret;\n" \
    "}\n"

/* The condition becomes what lies at `value`. */
#define PTX_SET_CONDITION \
    ".extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);\n" \
    ".visible .entry set_condition(.param .u64 handle, .param .u64 value)\n" \
    "{\n" \
    "  .reg .b32 %r<1>;\n" \
    "  .reg .b64 %rd<2>;\n" \
    "  ld.param.u64 %rd0, [handle];\n" \
    "  ld.param.u64 %rd1, [value];\n" \
    "  cvta.to.global.u64 %rd1, %rd1;\n" \
    "  ld.global.u32 %r0, [%rd1];\n" \
    "  {\n" \
    "  .param .b64 a;\n" \
    "  .param .b32 b;\n" \
    "  st.param.b64 [a], %rd0;\n" \
    "  st.param.b32 [b], %r0;\n" \
    "  call.uni cudaGraphSetConditional, (a, b);\n" \
    "  }\n" \
    "  ret;\n" \
    "}\n"

/* One less at `left`; the condition is whether any is left. */
#define PTX_COUNT_DOWN \
    ".visible .entry count_down(.param .u64 handle, .param .u64 left)\n" \
    "{\n" \
    "  .reg .b32 %r<2>;\n" \
    "  .reg .b64 %rd<2>;\n" \
    "  ld.param.u64 %rd0, [handle];\n" \
    "  ld.param.u64 %rd1, [left];\n" \
    "  cvta.to.global.u64 %rd1, %rd1;\n" \
    "  ld.global.u32 %r0, [%rd1];\n" \
    "  sub.u32 %r1, %r0, 1;\n" \
    "  st.global.u32 [%rd1], %r1;\n" \
    "  {\n" \
    "  .param .b64 a;\n" \
    "  .param .b32 b;\n" \
    "  st.param.b64 [a], %rd0;\n" \
    "  st.param.b32 [b], %r1;\n" \
    "  call.uni cudaGraphSetConditional, (a, b);\n" \
    "  }\n" \
    "  ret;\n" \
    "}\n"

#define PTX_PLAIN PTX_HEAD("6.3", "sm_75") PTX_EMPTY PTX_ADD_ONE PTX_SPIN PTX_SPIN_MEASURED PTX_LESS
#define PTX_DRAW PTX_HEAD("6.3", "sm_75") PTX_RANDOM
#define PTX_OLD PTX_HEAD("6.0", "sm_52") PTX_EMPTY
#define PTX_CONDITIONS PTX_HEAD("6.3", "sm_75") PTX_SET_CONDITION PTX_COUNT_DOWN

#endif
