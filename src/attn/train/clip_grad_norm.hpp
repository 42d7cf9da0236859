#pragma once

#include <vector>

#include "attn/train/module_ref.hpp"

namespace attn {

/// Multiplies all gradients of the modules by max_norm / (norm + 1e-6) if that is below 1, with norm = √Σ g² over all
/// of them as one vector. As in torch, NaN in a gradient makes the norm and all gradients NaN; an infinite norm makes
/// them 0, and infinite ones NaN. The order of the sum is fixed: modules, names, elements.
///
/// @param modules   modules with gradients
/// @param max_norm  0 to infinity; infinity only computes the norm
/// @return the norm before clipping; 0 if there are no gradients
/// @throws CONFIG if max_norm is negative or NaN
/// @throws ARGUMENT if a module is given twice or none is given
/// @throws UNSUPPORTED for an int8 module; after an error nothing has been written
/// @see Pascanu et al. 2013; torch.nn.utils.clip_grad_norm_
///
/// @code
/// attn::MultiHeadAttention layer({.embed_dim = 4, .num_heads = 2});
/// std::cout << attn::clip_grad_norm({layer}, 1.0);  // 0
/// @endcode
double clip_grad_norm(const std::vector<ModuleRef>& modules, double max_norm);

}  // namespace attn
