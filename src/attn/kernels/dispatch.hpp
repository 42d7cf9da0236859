#pragma once

#include <string_view>
#include <vector>

#include "attn/kernels/kernels.hpp"

// Chooses best() natively. Kernels do not include this file: each is compiled for one architecture.
namespace attn::kernels {

/// Tables that this machine supports, narrowest first, up to the environment variable ATTN_MAX_ARCH, if it is set.
/// Throws CONFIG if no compiled table has that name.
std::vector<const KernelTable*> available(std::string_view op);

/// best() without making the choice final.
const KernelTable& chosen(std::string_view op);

/// Makes best() return this table. Throws CONFIG if it is not available or another is in use.
void pin(std::string_view op, std::string_view architecture);

}  // namespace attn::kernels
