#include "attn/tensor/owner.hpp"

namespace attn {

Owner::Owner() = default;
Owner::Owner(const Owner& other) = default;
Owner::Owner(Owner&& other) noexcept = default;
Owner& Owner::operator=(const Owner& other) = default;
Owner& Owner::operator=(Owner&& other) noexcept = default;
Owner::~Owner() = default;

Owner::Owner(std::shared_ptr<const void> kept, int) : kept_(std::move(kept)) {}

}  // namespace attn
