#pragma once

#include <cstdint>
#include <functional>

namespace attn::test {

/// Most bytes that a call has at a time in blocks that begin at a cache line: those of Scratch and AlignedArray.
std::int64_t most_line_bytes_of(const std::function<void()>& call);
/// Most bytes that a call has at a time in all blocks.
std::int64_t most_bytes_of(const std::function<void()>& call);

}  // namespace attn::test
