#pragma once

#include <cstddef>

namespace attn::detail {

/// Of fresh memory that will be filled whole: asks the system for large pages where it gives them (Linux), which costs fewer page faults
/// than there are pages. Nothing for less than a few of them.
void prefer_large_pages(void* memory, std::size_t bytes) noexcept;

}  // namespace attn::detail
