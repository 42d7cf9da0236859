#pragma once

#include <memory>
#include <utility>

namespace attn {

/// Keeps the memory of a view alive. Out of line, because options are copied in many places and most have no owner.
class Owner {
 public:
  Owner();
  Owner(const Owner& other);
  Owner(Owner&& other) noexcept;
  Owner& operator=(const Owner& other);
  Owner& operator=(Owner&& other) noexcept;
  ~Owner();

  template <class T>
  Owner(std::shared_ptr<T> kept) : Owner(std::shared_ptr<const void>(std::move(kept)), 0) {}

 private:
  Owner(std::shared_ptr<const void> kept, int);

  std::shared_ptr<const void> kept_;
};

}  // namespace attn
