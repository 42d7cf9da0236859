#pragma once

#include <xsimd/xsimd.hpp>

// Defines Arch for sources that are compiled once per architecture; ATTN_ARCH is one of the names below.
#define ATTN_CONCAT_(a, b) a##b
#define ATTN_CONCAT(a, b) ATTN_CONCAT_(a, b)
#define ATTN_STRING_(a) #a
#define ATTN_STRING(a) ATTN_STRING_(a)

namespace attn::kernels {
namespace {

namespace named {
#if defined(__wasm__)
using wasm = xsimd::wasm;
#else
#if XSIMD_WITH_EMULATED
using emulated = xsimd::emulated<128>;
#endif
using sse4_2 = xsimd::sse4_2;
using avx2_fma = xsimd::fma3<xsimd::avx2>;
using avx512f = xsimd::avx512f;
using default_arch = xsimd::default_arch;
#endif
}  // namespace named

using Arch = named::ATTN_ARCH;

}  // namespace
}  // namespace attn::kernels
