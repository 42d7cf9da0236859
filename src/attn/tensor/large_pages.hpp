#pragma once

#include <cstddef>

namespace attn::detail {

/// Saves page faults on Linux for new memory of at least two large pages that will be filled.
void prefer_large_pages(void* memory, std::size_t bytes) noexcept;

}  // namespace attn::detail
