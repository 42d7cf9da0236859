#pragma once

#include <cstddef>

namespace attn::detail {

/// Asks the system for large pages (on Linux) for new memory that will be filled completely, to save page faults. Does
/// nothing for less than two large pages.
void prefer_large_pages(void* memory, std::size_t bytes) noexcept;

}  // namespace attn::detail
