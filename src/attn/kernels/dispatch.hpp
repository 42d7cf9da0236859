#pragma once

#include <string_view>
#include <vector>

#include "attn/kernels/kernels.hpp"

// Which table best() is. Not for the kernels, which are compiled for one architecture each. Natively only.
namespace attn::kernels {

/// What this process can take, the narrowest first: compiled in, known to this machine, and no wider than ATTN_MAX_ARCH, where the
/// environment has it. Throws CONFIG, naming `op`, where it has a name that is none of those compiled in.
std::vector<const KernelTable*> available(std::string_view op);

/// best(), without making it final.
const KernelTable& chosen(std::string_view op);

/// From now on best() is the one of that name. Throws CONFIG where it is not available, or another one is in use.
void pin(std::string_view op, std::string_view architecture);

}  // namespace attn::kernels
