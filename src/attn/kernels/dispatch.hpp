#pragma once

#include <string_view>
#include <vector>

#include "attn/kernels/kernels.hpp"

// Chooses the table of best(), natively only. Kernels do not include this file: each is compiled for one architecture.
namespace attn::kernels {

/// Returns the compiled tables that this machine supports, narrowest first, up to the one named by the environment
/// variable ATTN_MAX_ARCH, if it is set. Throws CONFIG, naming `op`, if no compiled table has that name.
std::vector<const KernelTable*> available(std::string_view op);

/// Returns what best() would, without making the choice final.
const KernelTable& chosen(std::string_view op);

/// Makes best() return this table. Throws CONFIG if it is not available or another one is already in use.
void pin(std::string_view op, std::string_view architecture);

}  // namespace attn::kernels
