#pragma once

#include <vector>

#include "attn/train/module_ref.hpp"

namespace attn {

/// Multiplies all gradients of the modules by max_norm / (norm + 1e-6) where that is below 1, norm = √Σ g² over all of them as one vector
/// (Pascanu et al. 2013; torch.nn.utils.clip_grad_norm_).
/// Returns the norm before, 0 where there is no gradient. max_norm from 0 to infinity, which only asks for the norm. As in torch, NaN in a
/// gradient makes the norm and all gradients NaN, and an infinite norm makes them 0, those that were infinite NaN.
/// The sum is in one order: modules, names, places. Throws CONFIG, ARGUMENT, UNSUPPORTED before anything is written.
double clip_grad_norm(const std::vector<ModuleRef>& modules, double max_norm);

}  // namespace attn
