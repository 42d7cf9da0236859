#pragma once

namespace attn::detail {

/// False in the JavaScript package, whose module is smaller without options that only C++ and Python have.
#if defined(__wasm__)
inline constexpr bool kIsNative = false;
#else
inline constexpr bool kIsNative = true;
#endif

}  // namespace attn::detail
