// Compares bits, because the program may be compiled with -ffast-math.
#include <attn/attn.hpp>
#include <bit>
#include <cstdint>
#include <iostream>

namespace {

const float kInfinity = std::bit_cast<float>(0x7F800000U), kNaN = std::bit_cast<float>(0x7FC00000U);

int failures = 0;
void check_close(float x, float expected, const char* what) {
  const bool is_number = (std::bit_cast<std::uint32_t>(x) & 0x7F800000U) != 0x7F800000U;
  if (is_number && x > expected - 1e-6F && x < expected + 1e-6F) return;
  std::cout << what << ": " << x << ", expected " << expected << '\n';
  ++failures;
}

}  // namespace

int main() {
  const xt::xtensor<float, 1> x{-kInfinity, 0, 0, 1};
  const xt::xtensor<float, 1> softmax = attn::softmax(x);
  check_close(softmax(0), 0, "softmax of -Infinity");
  check_close(softmax(1), 0.2119416F, "softmax of 0");
  check_close(softmax(3), 0.5761169F, "softmax of 1");

  const xt::xtensor<float, 2> q = xt::ones<float>({3, 2});
  for (const std::size_t blocked : {0U, 3U, 7U}) {
    xt::xtensor<float, 2> k = xt::ones<float>({8, 2}), v = xt::ones<float>({8, 2});
    k(blocked, 0) = v(blocked, 1) = kNaN;
    v(blocked, 0) = kInfinity;
    xt::xtensor<float, 1> open = xt::ones<float>({8});
    open(blocked) = 0;
    const auto out = attn::scaled_dot_product_attention(q, k, v, {.mask = attn::Mask::attend(open)}).output;
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t d = 0; d < 2; ++d) check_close(out(i, d), 1, "a value next to a blocked NaN");
    const xt::xtensor<float, 1> none = xt::zeros<float>({8});
    check_close(attn::scaled_dot_product_attention(q, k, v, {.mask = attn::Mask::attend(none)}).output(0, 0), 0, "a query without keys");
  }
  if (failures == 0) std::cout << "as IEEE arithmetic says\n";
  return failures;
}
