#include "attn/kernels/kernels.hpp"

#include <algorithm>
#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "attn/kernels/dispatch.hpp"
#include "attn/kernels/philox.hpp"
#include "support/matchers.hpp"
#include "support/random.hpp"
#include "support/reference_norm.hpp"

namespace attn::test {

namespace kernels_kernels_test {

using kernels::Gemm;
using kernels::KernelTable;

std::vector<const KernelTable*> architectures() { return kernels::available("test"); }

constexpr float kGuard = 12345.0F;

class Guarded {
 public:
  explicit Guarded(std::size_t n, std::size_t offset = 0) : offset_(offset), n_(n), data_(n + offset + 2 * kMargin, kGuard) {}
  float* data() { return data_.data() + kMargin + offset_; }
  std::vector<float> values() { return {data(), data() + n_}; }
  bool untouched_outside() {
    return std::all_of(data_.data(), data(), [](float x) { return x == kGuard; }) &&
           std::all_of(data() + n_, data_.data() + data_.size(), [](float x) { return x == kGuard; });
  }

 private:
  static constexpr std::size_t kMargin = 16;
  std::size_t offset_, n_;
  std::vector<float> data_;
};

struct GemmCase {
  std::size_t m, n, k;
  std::size_t packed_n, packed_k;  ///< the product may use a part
  std::size_t lda, ldc;
  bool bias;
  float alpha;
  bool accumulate = false;
};

std::string describe(const GemmCase& c, const KernelTable& table) {
  return std::string(table.architecture) + ": m " + std::to_string(c.m) + ", n " + std::to_string(c.n) + " of " + std::to_string(c.packed_n) +
         ", k " + std::to_string(c.k) + " of " + std::to_string(c.packed_k) + ", lda " + std::to_string(c.lda) + ", ldc " + std::to_string(c.ldc) +
         ", bias " + std::to_string(c.bias) + ", alpha " + std::to_string(c.alpha) + ", accumulate " + std::to_string(c.accumulate);
}

/// An architecture may fuse multiply-adds, but then in every tile.
struct GemmSeen {
  bool fused = true, plain = true;
};

bool gemm_is_right(const KernelTable& table, const GemmCase& c, Generator& random, GemmSeen& seen) {
  const std::size_t nr = table.nr;
  std::vector<float> a(c.m * c.lda + c.k, kNaN), w(c.packed_n * c.packed_k), bias(c.packed_n);
  for (std::size_t i = 0; i < c.m; ++i)
    for (std::size_t p = 0; p < c.k; ++p) a[i * c.lda + p] = random.uniform(-1, 1);
  for (float& x : w) x = random.uniform(-1, 1);
  for (float& x : bias) x = random.uniform(-1, 1);
  std::vector<float> panels(kernels::packed_size(nr, c.packed_n, c.packed_k));
  kernels::pack(w.data(), static_cast<std::ptrdiff_t>(c.packed_k), 1, c.packed_n, c.packed_k, nr, panels.data());

  const std::size_t extent = c.m == 0 || c.n == 0 ? 0 : (c.m - 1) * c.ldc + c.n;
  Guarded out(extent, random.next() % 4);
  for (std::size_t at = 0; at < extent && c.accumulate; ++at)
    if (at % c.ldc < c.n) out.data()[at] = random.uniform(-1, 1);
  const std::vector<float> before = out.values();
  table.gemm({.a = a.data(),
              .lda = static_cast<std::ptrdiff_t>(c.lda),
              .panels = panels.data(),
              .panel_stride = kernels::panel_size(nr, c.packed_k),
              .bias = c.bias ? bias.data() : nullptr,
              .c = out.data(),
              .ldc = static_cast<std::ptrdiff_t>(c.ldc),
              .m = c.m,
              .n = c.n,
              .k = c.k,
              .alpha = c.alpha,
              .accumulate = c.accumulate});
  if (!out.untouched_outside()) return false;
  for (std::size_t at = 0; at < extent; ++at) {
    const std::size_t i = at / c.ldc, j = at % c.ldc;
    const float got = out.data()[at];
    if (j >= c.n) {
      if (got != kGuard) return false;
      continue;
    }
    const float start = c.accumulate ? before[at] : c.bias ? bias[j] : 0;
    float fused = start, plain = start;
    double exact = start, terms = std::abs(start);
    for (std::size_t p = 0; p < c.k; ++p) {
      const float x = a[i * c.lda + p], y = w[j * c.packed_k + p];
      fused = std::fma(x, y, fused);
      plain = x * y + plain;
      exact += static_cast<double>(x) * y;
      terms += std::abs(static_cast<double>(x) * y);
    }
    if (std::abs(got - exact * c.alpha) > std::sqrt(static_cast<double>(c.k) + 2) * kEps * terms * std::abs(c.alpha)) return false;
    seen.fused = seen.fused && canonical_bits(got) == canonical_bits(fused * c.alpha);
    seen.plain = seen.plain && canonical_bits(got) == canonical_bits(plain * c.alpha);
    if (!seen.fused && !seen.plain) return false;
  }
  return true;
}

TEST_CASE("gemm gives every product of small sizes in the documented order and overwrites no other memory", "[kernels]") {
  for (const KernelTable* const arch : architectures()) {
    const KernelTable& table = *arch;
    Generator random(1);
    GemmSeen seen;
    std::size_t wrong = 0, count = 0;
    std::string first;
    const auto run = [&](const GemmCase& c) {
      ++count;
      if (gemm_is_right(table, c, random, seen)) return;
      if (wrong++ == 0) first = describe(c, table);
    };
    for (std::size_t m = 0; m <= 2 * table.mr + 1; ++m)
      for (std::size_t n = 0; n <= 2 * table.nr + 1; ++n)
        for (const std::size_t k : {0U, 1U, 2U, 3U, 5U, 8U})
          for (const bool accumulate : {false, true}) run({m, n, k, n, k, k, n, n % 2 == 0, k % 2 == 0 ? 1.0F : 0.3F, accumulate});
    for (std::size_t m = 1; m <= 3; ++m)
      for (std::size_t n = 2 * table.nr; n <= 5 * table.nr + 1; ++n)
        for (const std::size_t k : {1U, 6U})
          for (const bool accumulate : {false, true}) run({m, n, k, n, k + 1, k, n + 3, n % 2 == 0, 0.7F, accumulate});
    for (const std::size_t m : {1U, 7U, 24U, 37U})
      for (const std::size_t n : {1U, 17U, 40U, 67U})
        for (const std::size_t k : {17U, 64U, 129U})
          for (const bool bias : {false, true})
            for (const bool accumulate : {false, true}) run({m, n, k, n + 3, k + 5, k + 3, n + 5, bias, 0.5F, accumulate});
    INFO("seed 1; " << wrong << " of " << count << " products wrong, the first: " << first);
    CHECK(wrong == 0);
    CHECK((seen.fused || seen.plain));
  }
}

TEST_CASE("NaN and infinities in gemm affect only the elements that depend on them", "[kernels]") {
  for (const KernelTable* const arch : architectures()) {
    INFO(arch->architecture);
    const std::size_t m = 7, n = 19, k = 5, nr = arch->nr;
    std::vector<float> a(m * k, 1), w(n * k, 1), c(m * n);
    a[3 * k + 2] = kNaN;
    w[11 * k + 4] = kInfinity;
    std::vector<float> panels(kernels::packed_size(nr, n, k));
    kernels::pack(w.data(), k, 1, n, k, nr, panels.data());
    arch->gemm({.a = a.data(),
                .lda = k,
                .panels = panels.data(),
                .panel_stride = kernels::panel_size(nr, k),
                .c = c.data(),
                .ldc = n,
                .m = m,
                .n = n,
                .k = k});
    Array expected({static_cast<std::int64_t>(m), static_cast<std::int64_t>(n)}, 5);
    for (std::size_t i = 0; i < m; ++i) expected.data[i * n + 11] = kInfinity;
    for (std::size_t j = 0; j < n; ++j) expected.data[3 * n + j] = kNaN;
    CHECK_THAT(Array(expected.dims, c), HasBitsOf(expected));
  }
}

TEST_CASE("a product that is summed over k in parts has the bits of the whole, also with blocked terms", "[kernels]") {
  for (const KernelTable* const arch : architectures()) {
    const std::size_t nr = arch->nr;
    for (const std::size_t m : {std::size_t{1}, std::size_t{2}, std::size_t{3}, arch->mr + 1})
      for (std::size_t n = 1; n <= 5 * nr + 1; n += n % nr == 1 ? nr - 2 : 1)  // around whole panels
        for (const std::size_t k : {2U, 9U, 33U}) {
          INFO(arch->architecture << ", seed " << n * 64 + k << ", m " << m << ", n " << n << ", k " << k);
          Generator random(n * 64 + k);
          std::vector<float> a(m * k), w(n * k), bias(n), skip(k);
          for (std::vector<float>* values : {&a, &w, &bias})
            for (float& x : *values) x = random.uniform(-1, 1);
          for (float& x : skip) x = random.coin(0.4) ? -kInfinity : 0;
          std::vector<float> panels(kernels::packed_size(nr, n, k));
          kernels::pack(w.data(), static_cast<std::ptrdiff_t>(k), 1, n, k, nr, panels.data());
          for (const bool skipping : {false, true}) {
            if (skipping && m > 1) continue;
            const auto product = [&](const std::vector<std::size_t>& ends) {
              std::vector<float> c(m * n);  // AddressSanitizer then detects reads past the end
              for (std::size_t part = 0, from = 0; part < ends.size(); from = ends[part++]) {
                const Gemm<float> gemm{.a = a.data() + from,
                                       .lda = static_cast<std::ptrdiff_t>(k),
                                       .panels = panels.data() + from * nr,
                                       .panel_stride = kernels::panel_size(nr, k),
                                       .bias = bias.data(),
                                       .c = c.data(),
                                       .ldc = static_cast<std::ptrdiff_t>(n),
                                       .m = m,
                                       .n = n,
                                       .k = ends[part] - from,
                                       .accumulate = part > 0,
                                       .blocked_terms = skipping ? skip.data() + from : nullptr};
                arch->gemm(gemm);
              }
              return c;
            };
            const std::vector<float> whole = product({k});
            REQUIRE(product({k / 2, k}) == whole);
            REQUIRE(product({1, 1, k - 1, k, k}) == whole);
          }
        }
  }
}

TEST_CASE("gemm leaves out blocked terms whatever they contain, and the bits of the others stay the same", "[kernels]") {
  for (const KernelTable* const arch : architectures()) {
    const std::size_t nr = arch->nr;
    for (std::size_t n = 1; n <= 5 * nr + 1; n += n < 2 * nr ? 1 : 3)
      for (const std::size_t k : {1U, 4U, 9U, 33U}) {
        INFO(arch->architecture << ", seed " << n * 64 + k << ", n " << n << ", k " << k);
        Generator random(n * 64 + k);
        std::vector<float> a(k), w(n * k), skip(k);
        for (float& x : a) x = random.uniform(-1, 1);
        for (float& x : w) x = random.uniform(-1, 1);
        for (float& x : skip) x = random.coin(0.4) ? -kInfinity : random.uniform(-1, 1);
        std::vector<float> kept_a, kept_w(n * k);
        for (std::size_t p = 0; p < k; ++p)
          if (skip[p] != -kInfinity) kept_a.push_back(a[p]);
        const std::size_t kept = kept_a.size();
        for (std::size_t j = 0; j < n; ++j)
          for (std::size_t p = 0, at = 0; p < k; ++p)
            if (skip[p] != -kInfinity) kept_w[j * kept + at++] = w[j * k + p];
        for (std::size_t p = 0; p < k; ++p)
          if (skip[p] == -kInfinity)
            for (std::size_t j = 0; j < n; ++j) w[j * k + p] = j % 2 == 0 ? kNaN : kInfinity;

        std::vector<float> panels(kernels::packed_size(nr, n, k)), kept_panels(kernels::packed_size(nr, n, kept)), expected(n);
        kernels::pack(w.data(), static_cast<std::ptrdiff_t>(k), 1, n, k, nr, panels.data());
        kernels::pack(kept_w.data(), static_cast<std::ptrdiff_t>(kept), 1, n, kept, nr, kept_panels.data());
        arch->gemm({.a = kept_a.data(),
                    .panels = kept_panels.data(),
                    .panel_stride = kernels::panel_size(nr, kept),
                    .c = expected.data(),
                    .m = 1,
                    .n = n,
                    .k = kept});
        Guarded out(n, n % 4);
        arch->gemm({.a = a.data(),
                    .panels = panels.data(),
                    .panel_stride = kernels::panel_size(nr, k),
                    .c = out.data(),
                    .m = 1,
                    .n = n,
                    .k = k,
                    .blocked_terms = skip.data()});
        REQUIRE(out.untouched_outside());
        REQUIRE(out.values() == expected);
      }
  }
}

TEST_CASE("pack stores panels of columns, padded with zeros", "[kernels]") {
  const float w[] = {1, 2, 3, 4, 5, 6};  // (3,2)
  std::vector<float> panels(kernels::packed_size(2, 3, 2), kNaN);
  kernels::pack(w, 2, 1, 3, 2, 2, panels.data());
  CHECK(panels == std::vector<float>{1, 3, 2, 4, 5, 0, 6, 0});
  kernels::pack(w, 1, 3, 3, 2, 2, panels.data());
  CHECK(panels == std::vector<float>{1, 2, 4, 5, 3, 0, 6, 0});
}

TEST_CASE("unpack returns the bits given to pack, whole and transposed", "[kernels]") {
  for (const std::size_t nr : {1U, 8U, 16U, 32U})
    for (const std::size_t n : {0U, 1U, 7U, 8U, 33U})
      for (const std::size_t k : {0U, 1U, 5U, 16U}) {
        INFO("seed 2, nr " << nr << ", n " << n << ", k " << k);
        Generator random(2);
        std::vector<float> w(n * k), columns(n * k), back(n * k), columns_back(n * k);
        for (float& x : w) x = std::bit_cast<float>(static_cast<std::uint32_t>(random.next()));  // including NaN payloads
        const auto same_bits = [](const std::vector<float>& a, const std::vector<float>& b) {
          return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * 4) == 0);
        };
        std::vector<float> panels(kernels::packed_size(nr, n, k)), transposed(kernels::packed_size(nr, k, n), kNaN);
        kernels::pack(w.data(), static_cast<std::ptrdiff_t>(k), 1, n, k, nr, panels.data());
        kernels::unpack(panels.data(), n, k, nr, back.data());
        CHECK(same_bits(back, w));
        kernels::transpose(w.data(), static_cast<std::ptrdiff_t>(k), n, k, columns.data(), n);
        for (std::size_t i = 0; i < n; ++i)
          for (std::size_t p = 0; p < k; ++p) REQUIRE(std::memcmp(&columns[p * n + i], &w[i * k + p], 4) == 0);
        std::vector<float> apart(k * (n + 3), 1);
        kernels::transpose(w.data(), static_cast<std::ptrdiff_t>(k), n, k, apart.data(), n + 3);
        for (std::size_t p = 0; p < k; ++p) {
          REQUIRE((n == 0 || std::memcmp(&apart[p * (n + 3)], &columns[p * n], 4 * n) == 0));
          for (std::size_t i = n; i < n + 3; ++i) REQUIRE(apart[p * (n + 3) + i] == 1);
        }
        std::vector<float> expected(transposed.size());
        kernels::pack(columns.data(), static_cast<std::ptrdiff_t>(n), 1, k, n, nr, expected.data());
        kernels::pack_transposed(panels.data(), n, k, nr, 0, k, transposed.data());
        CHECK(same_bits(transposed, expected));
        std::fill(transposed.begin(), transposed.end(), kNaN);
        const std::size_t middle = std::min(k, nr);
        kernels::pack_transposed(panels.data(), n, k, nr, middle, k, transposed.data() + kernels::packed_size(nr, middle, n));
        kernels::pack_transposed(panels.data(), n, k, nr, 0, middle, transposed.data());
        CHECK(same_bits(transposed, expected));
      }
}

double ulps(float y, double exact) {
  const double ulp = std::max(std::ldexp(1.0, std::ilogb(exact) - 23), kSmallestDenormal);
  return std::abs(y - exact) / ulp;
}

TEST_CASE("exp is within one unit in the last place, and 0 below the smallest normal number", "[kernels]") {
  // Every 1021st float of (-104, 0]: 8000 per power of two.
  std::vector<float> x;
  for (std::uint32_t bits = 0x80000000; bits < 0xc2d00000; bits += 1021) x.push_back(std::bit_cast<float>(bits));
  // The range of attention's scores.
  for (int i = 0; i < 400'000; ++i) x.push_back(-20.0F * static_cast<float>(i) / 400'000);
  // Each float around ln 2⁻¹²⁶.
  for (std::uint32_t bits = std::bit_cast<std::uint32_t>(-87.3F); bits < std::bit_cast<std::uint32_t>(-87.4F); ++bits)
    x.push_back(std::bit_cast<float>(bits));
  for (const KernelTable* const arch : architectures()) {
    std::vector<float> y(x.size());
    arch->exp_row(x.data(), 0, y.data(), x.size());
    double worst = 0, at = 0;
    std::size_t not_zero = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = std::exp(static_cast<double>(x[i]));
      if (exact < kSmallestNormal) {
        not_zero += y[i] == 0 ? 0 : 1;
        continue;
      }
      const double error = ulps(y[i], exact);
      if (!(error <= worst)) worst = error, at = x[i];
    }
    INFO(arch->architecture << ": largest error " << worst << " ulp at " << at << " of " << x.size() << " arguments");
    CHECK(worst < 1);
    CHECK(not_zero == 0);
  }
}

TEST_CASE("exp is exact for results of zero, one and NaN", "[kernels]") {
  const std::vector<float> x{0.0F, -0.0F, -kInfinity, kNaN, -kNaN, -3.4e38F, -87.34F, -105.0F, -1000.0F, -1e-45F, -1e-30F, -2e-8F};
  const std::vector<float> expected{1, 1, 0, kNaN, kNaN, 0, 0, 0, 0, 1, 1, 1};
  for (const KernelTable* const arch : architectures()) {
    INFO(arch->architecture);
    Array y({static_cast<std::int64_t>(x.size())});
    arch->exp_row(x.data(), 0, y.data.data(), x.size());
    CHECK_THAT(y, HasBitsOf(Array(y.dims, expected)));
  }
}

TEST_CASE("max_row finds the largest value at any position and ignores NaN", "[kernels]") {
  for (const KernelTable* const arch : architectures())
    for (std::size_t n = 0; n <= 70; ++n) {
      INFO(arch->architecture << ", seed " << n << ", n " << n);
      Generator random(n);
      Guarded x(n, n % 4);
      const auto most = [&] { return arch->max_row(x.data(), n); };
      std::fill_n(x.data(), n, kNaN);
      CHECK(most() == -kInfinity);
      std::fill_n(x.data(), n, -kInfinity);
      CHECK(most() == -kInfinity);
      for (std::size_t i = 0; i < n; ++i) x.data()[i] = random.coin(0.2) ? kNaN : random.coin(0.2) ? -kInfinity : -50 + random.normal();
      std::size_t missed = 0;
      for (std::size_t i = 0; i < n; ++i)
        for (const float largest : {-3.0F, 3.4e38F, kInfinity}) {
          const float old = std::exchange(x.data()[i], largest);
          missed += most() == largest ? 0 : 1;
          x.data()[i] = old;
        }
      CHECK(missed == 0);
    }
}

Array exp_row_of(const KernelTable& table, const std::vector<float>& x, float shift, std::size_t offset, bool in_place) {
  Guarded out(x.size(), offset), in(x.size(), (offset + 1) % 4);
  float* const from = in_place ? out.data() : in.data();
  std::copy(x.begin(), x.end(), from);
  const float sum = table.exp_row(from, shift, out.data(), x.size());
  CHECK(out.untouched_outside());
  std::vector<float> values = out.values();
  values.push_back(sum);
  return {{static_cast<std::int64_t>(values.size())}, values};
}

TEST_CASE("exp_row gives each value the same bits at every position, length and alignment, also in place, and so does its sum", "[kernels]") {
  for (const KernelTable* const arch : architectures())
    for (std::size_t n = 0; n <= 70; ++n) {
      INFO(arch->architecture << ", seed " << n << ", n " << n);
      Generator random(n);
      const float shift = random.coin(0.5) ? 2.5F : -40.0F;
      std::vector<float> x(n);
      for (float& value : x) value = shift - 3 * std::abs(random.normal());
      if (n > 3) x[n / 2] = -kInfinity;
      Array expected({static_cast<std::int64_t>(n) + 1});
      Sum sum;
      for (std::size_t i = 0; i < n; ++i) {
        const float difference = x[i] - shift;
        arch->exp_row(&difference, 0, &expected.data[i], 1);
        sum.add(expected.data[i], 0, 1, 0);
      }
      const Array y = exp_row_of(*arch, x, shift, n % 4, false);
      expected.data[n] = y.data[n];
      CHECK(std::abs(y.data[n] - sum.value()) <= sum.error());
      CHECK_THAT(y, HasBitsOf(expected));
      CHECK_THAT(exp_row_of(*arch, x, shift, (n + 2) % 4, true), HasBitsOf(y));
      if (n > 3) CHECK(y.data[n / 2] == 0);
      x.resize(n + 1 + n % 19, -kInfinity);
      CHECK(exp_row_of(*arch, x, shift, 0, false).data.back() == y.data[n]);
      if (n == 0) continue;
      x.resize(n);
      const std::size_t bad = random.next() % n;
      x[bad] = kNaN;
      expected.data[bad] = expected.data[n] = kNaN;
      CHECK_THAT(exp_row_of(*arch, x, shift, n % 4, false), HasBitsOf(expected));
    }
}

Array softmax_of(const KernelTable& table, const std::vector<float>& x, std::size_t offset, bool in_place) {
  Guarded out(x.size(), offset), in(x.size(), (offset + 1) % 4);
  std::copy(x.begin(), x.end(), in.data());
  if (in_place) std::copy(x.begin(), x.end(), out.data());
  table.softmax_row(in_place ? out.data() : in.data(), out.data(), x.size());
  CHECK(out.untouched_outside());
  return Array({static_cast<std::int64_t>(x.size())}, out.values());
}

Estimate softmax_estimate(const std::vector<float>& x) {
  Estimate y({static_cast<std::int64_t>(x.size())});
  const std::vector<double> values(x.begin(), x.end()), errors(x.size(), 0.0);
  reference_softmax(values.data(), errors.data(), std::vector<bool>(x.size(), true), y.value.data(), y.error.data());
  return y;
}

TEST_CASE("softmax_row agrees with float64 for every length and alignment, also in place", "[kernels]") {
  for (const KernelTable* const arch : architectures())
    for (std::size_t n = 1; n <= 70; ++n)
      for (const float spread : {0.01F, 3.0F, 60.0F}) {
        const std::size_t offset = n % 4;
        INFO(arch->architecture << ", seed " << n << ", n " << n << ", spread " << spread << ", offset " << offset);
        Generator random(n);
        std::vector<float> x(n);
        for (float& value : x) value = spread * random.normal();
        if (n > 3) x[n / 2] = -kInfinity;
        const Array y = softmax_of(*arch, x, offset, false);
        CHECK_THAT(y, IsCloseTo(softmax_estimate(x)));
        CHECK_THAT(softmax_of(*arch, x, offset, true), HasBitsOf(y));
        if (n > 3) CHECK(y.data[n / 2] == 0);
      }
}

TEST_CASE("softmax_row of extreme values follows IEEE arithmetic", "[kernels]") {
  struct Case {
    const char* what;
    std::vector<float> x, y;
  };
  const std::vector<Case> cases{
      {"one value", {-7}, {1}},
      {"the largest floats", {3.4e38F, -3.4e38F, 3.4e38F}, {0.5F, 0, 0.5F}},
      {"denormals", {1e-45F, -1e-45F, 0, 0}, {0.25F, 0.25F, 0.25F, 0.25F}},
      {"all -infinity", {-kInfinity, -kInfinity, -kInfinity, -kInfinity, -kInfinity}, {kNaN, kNaN, kNaN, kNaN, kNaN}},
      {"a NaN at the end", {1, 2, 3, 4, kNaN}, {kNaN, kNaN, kNaN, kNaN, kNaN}},
      {"a NaN at the start", {kNaN, 2, 3, 4, 5, 6, 7, 8, 9}, std::vector<float>(9, kNaN)},
      {"a NaN among -infinities", {-kInfinity, kNaN, -kInfinity}, {kNaN, kNaN, kNaN}},
      {"+infinity", {1, kInfinity, 2}, {kNaN, kNaN, kNaN}},
      {"one left", {-kInfinity, -3e38F, -kInfinity}, {0, 1, 0}},
  };
  for (const KernelTable* const arch : architectures())
    for (const Case& c : cases) {
      INFO(arch->architecture << ": " << c.what);
      CHECK_THAT(softmax_of(*arch, c.x, 1, false), HasBitsOf(Array({static_cast<std::int64_t>(c.y.size())}, c.y)));
    }
}

TEST_CASE("a sum of more than 2^24 terms per lane keeps growing", "[kernels][large]") {
  const std::size_t n = (std::size_t{1} << 26U) + 5;
  std::vector<float> x(n, 3.0F);
  for (const KernelTable* const arch : architectures()) {
    INFO(arch->architecture);
    CHECK(arch->dot(x.data(), x.data(), n) == 9 * static_cast<float>(n));
    CHECK(arch->exp_row(x.data(), x[0], x.data(), n) == static_cast<float>(n));
    std::fill(x.begin(), x.end(), 3.0F);
  }
}

TEST_CASE("blocked values after the others do not change the bits of softmax_row", "[kernels]") {
  for (const KernelTable* const arch : architectures())
    for (std::size_t n = 1; n <= 40; ++n) {
      INFO(arch->architecture << ", seed " << n << ", n " << n);
      Generator random(n);
      std::vector<float> x(n);
      for (float& value : x) value = random.normal();
      const Array alone = softmax_of(*arch, x, 0, false);
      x.resize(n + 1 + n % 19, -kInfinity);
      Array longer = softmax_of(*arch, x, 0, false);
      CHECK(std::all_of(longer.data.begin() + static_cast<std::ptrdiff_t>(n), longer.data.end(), [](float value) { return value == 0; }));
      longer.data.resize(n);
      CHECK_THAT(Array(alone.dims, longer.data), HasBitsOf(alone));
    }
}

TEST_CASE("mask_row adds the bias, and blocks elements with bias -infinity whatever they contain", "[kernels]") {
  for (const KernelTable* const arch : architectures())
    for (std::size_t n = 0; n <= 35; ++n) {
      INFO(arch->architecture << ", seed " << n << ", n " << n);
      Generator random(n);
      const std::vector<float> specials{kNaN, kInfinity, -kInfinity, 3e38F, 0, 1e-45F};
      std::vector<float> x(n), bias(n), expected(n);
      for (std::size_t i = 0; i < n; ++i) {
        x[i] = random.coin(0.3) ? random.pick(specials) : random.normal();
        bias[i] = random.coin(0.4) ? -kInfinity : random.coin(0.5) ? 0 : random.normal();
        expected[i] = bias[i] == -kInfinity ? -kInfinity : x[i] + bias[i];
      }
      Guarded out(n, n % 4);
      arch->mask_row(x.data(), bias.data(), out.data(), n);
      CHECK(out.untouched_outside());
      CHECK_THAT(Array({static_cast<std::int64_t>(n)}, out.values()), HasBitsOf(Array({static_cast<std::int64_t>(n)}, expected)));
      std::copy(x.begin(), x.end(), out.data());
      arch->mask_row(out.data(), bias.data(), out.data(), n);
      CHECK_THAT(Array({static_cast<std::int64_t>(n)}, out.values()), HasBitsOf(Array({static_cast<std::int64_t>(n)}, expected)));
    }
}

TEST_CASE("scale_row multiplies each value", "[kernels]") {
  for (const KernelTable* const arch : architectures())
    for (std::size_t n = 0; n <= 35; ++n) {
      INFO(arch->architecture << ", seed " << n << ", n " << n);
      Generator random(n);
      std::vector<float> x(n), expected(n);
      for (float& value : x) value = random.normal();
      for (std::size_t i = 0; i < n; ++i) expected[i] = x[i] * 0.37F;
      Guarded out(n, n % 4);
      arch->scale_row(x.data(), 0.37F, out.data(), n);
      CHECK(out.untouched_outside());
      CHECK(out.values() == expected);
    }
}

TEST_CASE("all_finite finds one bad value at any position", "[kernels]") {
  for (const KernelTable* const arch : architectures())
    for (std::size_t n = 0; n <= 40; ++n) {
      INFO(arch->architecture << ", n " << n);
      std::vector<float> x(n + 1, 3.4e38F);
      for (std::size_t i = 0; i < n; i += 3) x[i] = i % 2 == 0 ? -3.4e38F : 1e-45F;
      x[n] = kNaN;
      CHECK(arch->all_finite(x.data(), 1, n));
      for (std::size_t i = 0; i < n; ++i)
        for (const float bad : {kNaN, kInfinity, -kInfinity}) {
          const float old = std::exchange(x[i], bad);
          if (arch->all_finite(x.data(), 1, n)) FAIL_CHECK("missed " << bad << " at " << i);
          x[i] = old;
        }
    }
}

TEST_CASE("all_finite checks the scaled values", "[kernels]") {
  for (const KernelTable* const arch : architectures())
    for (const float largest : {0x1p96F, 0x1.fffffep95F}) {
      std::vector<float> x(37, -1.0F);
      x[20] = -largest;
      INFO(arch->architecture << ", " << largest);
      CHECK(arch->all_finite(x.data(), 0x1p32F, x.size()) == (largest < 0x1p96F));
    }
}

using kernels::Activation;

constexpr Activation kActivations[] = {Activation::relu,    Activation::gelu,     Activation::gelu_tanh, Activation::silu,      Activation::tanh,
                                       Activation::sigmoid, Activation::identity, Activation::mish,      Activation::quick_gelu};
constexpr const char* kNames[] = {"relu", "gelu", "gelu_tanh", "silu", "tanh", "sigmoid", "identity", "mish", "quick_gelu"};
const char* name_of(Activation f) { return kNames[static_cast<std::size_t>(f)]; }

double exact_sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double exact(Activation f, double x) {
  switch (f) {
    case Activation::relu:
      return std::max(x, 0.0);
    case Activation::gelu:
      return x * 0.5 * std::erfc(-x / std::sqrt(2.0));
    case Activation::gelu_tanh:
      return x * exact_sigmoid(2 * std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x));
    case Activation::silu:
      return x * exact_sigmoid(x);
    case Activation::tanh:
      return std::tanh(x);
    case Activation::sigmoid:
      return exact_sigmoid(x);
    case Activation::identity:
      return x;
    case Activation::mish:
      return x * std::tanh(std::log1p(std::exp(x)));
    case Activation::quick_gelu:
      return x * exact_sigmoid(1.702 * x);
  }
  return kNaN;
}

/// All but tanh use exp of a negative number, which is 0 below the smallest normal number.
double allowed_error(Activation f, double x, double y) {
  const double ulp = y == 0 ? kSmallestDenormal : std::max(std::ldexp(1.0, std::ilogb(y) - 23), kSmallestDenormal);
  const auto flushed = [&](double argument) { return std::exp(argument * (1 + 2 * kEps)) < kSmallestNormal ? std::abs(y) : 0; };
  switch (f) {
    case Activation::relu:
    case Activation::identity:
      return 0;
    case Activation::gelu:
    case Activation::gelu_tanh: {
      // The left tail has a relative error of eps times the argument of exp; the right end is exact.
      const double argument = f == Activation::gelu ? x * x / 2 : 1.6 * std::abs(x) + 0.0714 * std::abs(x * x * x);
      const double tail = (4 + 3 * argument) * kEps * std::abs(y) + (std::abs(x) + 1) * kSmallestDenormal + flushed(-argument);
      return x < 0 ? std::min(1e-6, tail) : x < 9 ? 1e-6 : 0;
    }
    case Activation::silu:
      return 4 * ulp + std::abs(x) * kSmallestDenormal + (x < 0 ? flushed(x) : 0);
    case Activation::tanh:
      return 2 * ulp;
    case Activation::sigmoid:
      return 3 * ulp + (x < 0 ? flushed(x) : 0);
    case Activation::mish:
      return 5 * ulp + std::abs(x) * kSmallestDenormal + (x < 0 ? flushed(x) : 0);
    case Activation::quick_gelu:
      // Constant and product are rounded: exp's argument errs by 2 eps.
      return (5 + 2 * std::abs(1.702 * x)) * ulp + std::abs(x) * kSmallestDenormal + (x < 0 ? flushed(1.702 * x) : 0);
  }
  return 0;
}

TEST_CASE("activations are within their documented error at floats of every exponent", "[kernels]") {
  std::vector<float> x;
  for (const float sign : {1.0F, -1.0F})
    for (std::uint32_t bits = 0; bits < 0x7f800000; bits += 8209) x.push_back(sign * std::bit_cast<float>(bits));
  for (int i = -100'000; i <= 100'000; ++i) x.push_back(16.0F * static_cast<float>(i) / 100'000);
  for (const Activation f : kActivations) {
    std::vector<double> expected, bound;
    for (const float value : x) {
      expected.push_back(exact(f, value));
      bound.push_back(allowed_error(f, value, expected.back()));
    }
    for (const KernelTable* const arch : architectures()) {
      std::vector<float> y(x.size());
      arch->activation_row(f, x.data(), y.data(), x.size());
      std::size_t wrong = 0, first = 0;
      for (std::size_t i = 0; i < x.size(); ++i)
        if (!(std::abs(y[i] - expected[i]) <= bound[i]) && wrong++ == 0) first = i;
      INFO(arch->architecture << ", " << name_of(f) << ": " << wrong << " of " << x.size() << " wrong, the first: f(" << x[first] << ") is "
                              << y[first] << ", expected " << expected[first] << " ± " << bound[first]);
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("activations of zeros, infinities and NaN agree with torch", "[kernels]") {
  const std::vector<float> x{-kInfinity, kInfinity, kNaN, -0.0F, 0.0F, -3e38F, 3e38F, -200, 200, -1e-45F, 1e-45F, -1e-38F};
  // torch 2.13 in float64: its float32 gelu returns +0 for -0 and -3e38.
  const std::vector<std::vector<float>> expected{
      {0, kInfinity, kNaN, -0.0F, 0, 0, 3e38F, 0, 200, 0, 1e-45F, 0},
      {kNaN, kInfinity, kNaN, -0.0F, 0, -0.0F, 3e38F, -0.0F, 200, -0.0F, 0, -0.5e-38F},
      {kNaN, kInfinity, kNaN, -0.0F, 0, -0.0F, 3e38F, -0.0F, 200, -0.0F, 0, -0.5e-38F},
      {kNaN, kInfinity, kNaN, -0.0F, 0, -0.0F, 3e38F, -0.0F, 200, -0.0F, 0, -0.5e-38F},
      {-1, 1, kNaN, -0.0F, 0, -1, 1, -1, 1, -1e-45F, 1e-45F, -1e-38F},
      {0, 1, kNaN, 0.5F, 0.5F, 0, 1, 0, 1, 0.5F, 0.5F, 0.5F},
      x,
      {kNaN, kInfinity, kNaN, -0.0F, 0, -0.0F, 3e38F, -0.0F, 200, -1e-45F, 1e-45F, -1e-38F * 0.6F},
      {kNaN, kInfinity, kNaN, -0.0F, 0, -0.0F, 3e38F, -0.0F, 200, -0.0F, 0, -0.5e-38F},
  };
  for (const KernelTable* const arch : architectures())
    for (const Activation f : kActivations) {
      INFO(arch->architecture << ", " << name_of(f));
      Array y({static_cast<std::int64_t>(x.size())});
      arch->activation_row(f, x.data(), y.data.data(), x.size());
      CHECK_THAT(y, HasBitsOf(Array(y.dims, expected[static_cast<std::size_t>(f)])));
    }
}

TEST_CASE("tanh is within two units in the last place and monotonic", "[kernels]") {
  // Every 509th float up to the result 1, and each around the switch of formulas.
  std::vector<float> x;
  for (std::uint32_t bits = 1; bits < std::bit_cast<std::uint32_t>(9.1F); bits += 509) x.push_back(std::bit_cast<float>(bits));
  const std::uint32_t bend = std::bit_cast<std::uint32_t>(0.55F);
  for (std::uint32_t bits = bend - 50'000; bits < bend + 50'000; ++bits) x.push_back(std::bit_cast<float>(bits));
  std::sort(x.begin(), x.end());
  std::vector<double> expected;
  for (const float value : x) expected.push_back(std::tanh(static_cast<double>(value)));
  for (const KernelTable* const arch : architectures()) {
    std::vector<float> y(x.size());
    arch->activation_row(Activation::tanh, x.data(), y.data(), x.size());
    double worst = 0, at = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
      if (const double error = ulps(y[i], expected[i]); !(error <= worst)) worst = error, at = x[i];
    INFO(arch->architecture << ": largest error " << worst << " ulp at " << at << " of " << x.size() << " arguments");
    CHECK(worst < 2);
    CHECK(std::is_sorted(y.begin(), y.end()));
  }
}

TEST_CASE("tanh and sigmoid stay within their range and are odd", "[kernels]") {
  std::vector<float> x, minus_x;
  for (std::uint32_t bits = 0x40800000; bits < 0x41300000; bits += 13) {
    x.push_back(std::bit_cast<float>(bits));
    minus_x.push_back(-x.back());
  }
  for (const KernelTable* const arch : architectures()) {
    INFO(arch->architecture);
    std::vector<float> y(x.size()), minus_y(x.size());
    for (const Activation f : {Activation::tanh, Activation::sigmoid}) {
      arch->activation_row(f, x.data(), y.data(), x.size());
      arch->activation_row(f, minus_x.data(), minus_y.data(), x.size());
      CHECK(std::all_of(y.begin(), y.end(), [](float value) { return value <= 1; }));
      if (f == Activation::tanh) CHECK(std::equal(y.begin(), y.end(), minus_y.begin(), [](float a, float b) { return a == -b; }));
    }
  }
}

TEST_CASE("activation_row gives each value the same bits at every position, length and alignment, also in place", "[kernels]") {
  for (const KernelTable* const arch : architectures())
    for (const Activation f : kActivations)
      for (std::size_t n = 0; n <= 35; ++n) {
        INFO(arch->architecture << ", " << name_of(f) << ", seed " << n << ", n " << n);
        Generator random(n);
        Array expected({static_cast<std::int64_t>(n)});
        Guarded in(n, (n + 1) % 4), out(n, n % 4);
        for (std::size_t i = 0; i < n; ++i) {
          in.data()[i] = 3 * random.normal();
          arch->activation_row(f, in.data() + i, &expected.data[i], 1);
        }
        arch->activation_row(f, in.data(), out.data(), n);
        CHECK_THAT(Array(expected.dims, out.values()), HasBitsOf(expected));
        arch->activation_row(f, in.data(), in.data(), n);
        CHECK_THAT(Array(expected.dims, in.values()), HasBitsOf(expected));
        CHECK((in.untouched_outside() && out.untouched_outside()));
      }
}

TEST_CASE("add_row and multiply_row are exact, also if the output is one of the inputs", "[kernels]") {
  for (const KernelTable* const arch : architectures())
    for (std::size_t n = 0; n <= 35; ++n) {
      INFO(arch->architecture << ", seed " << n << ", n " << n);
      Generator random(n);
      std::vector<float> x(n), y(n), sum(n), product(n);
      for (std::size_t i = 0; i < n; ++i) {
        x[i] = random.normal();
        y[i] = random.normal();
        sum[i] = x[i] + y[i];
        product[i] = x[i] * y[i];
      }
      for (const bool adding : {true, false}) {
        const auto row = adding ? arch->add_row : arch->multiply_row;
        const std::vector<float>& expected = adding ? sum : product;
        Guarded out(n, n % 4), left(n, (n + 1) % 4), right(n, (n + 2) % 4);
        std::copy(x.begin(), x.end(), left.data());
        std::copy(y.begin(), y.end(), right.data());
        row(left.data(), right.data(), out.data(), n);
        CHECK(out.values() == expected);
        row(left.data(), y.data(), left.data(), n);
        CHECK(left.values() == expected);
        row(x.data(), right.data(), right.data(), n);
        CHECK(right.values() == expected);
        CHECK((out.untouched_outside() && left.untouched_outside() && right.untouched_outside()));
      }
    }
}

TEST_CASE("divide_row, add_scaled_row, maximum_row and rotate_row round each operation once", "[kernels]") {
  const auto array = [](const std::vector<float>& x) { return Array({static_cast<std::int64_t>(x.size())}, x); };
  for (const KernelTable* const arch : architectures())
    for (std::size_t n = 0; n <= 35; ++n) {
      INFO(arch->architecture << ", seed " << n << ", n " << n);
      Generator random(n);
      const std::vector<float> specials{kNaN, kInfinity, -kInfinity, 3e38F, 0, -0.0F, 1e-45F};
      std::vector<float> x(n), y(n), quotients(n), larger(n), sums(n), cos(n), sin(n), pairs(2 * n), there(2 * n), back(2 * n);
      for (std::size_t i = 0; i < n; ++i) {
        x[i] = random.coin(0.3) ? random.pick(specials) : random.normal();
        y[i] = random.coin(0.3) ? random.pick(specials) : random.normal();
        quotients[i] = x[i] / 3.7F;
        sums[i] = y[i] + 0.7F * x[i];
        larger[i] = y[i] > x[i] || std::isnan(y[i]) ? y[i] : x[i];
        const float a = pairs[i] = random.normal(), b = pairs[n + i] = random.normal(), c = cos[i] = random.normal(), s = sin[i] = random.normal();
        there[i] = a * c - b * s;
        there[n + i] = b * c + a * s;
        back[i] = a * c + b * s;
        back[n + i] = b * c - a * s;
      }
      Guarded out(n, n % 4);
      arch->divide_row(x.data(), 3.7F, out.data(), n);
      CHECK_THAT(array(out.values()), HasBitsOf(array(quotients)));
      arch->maximum_row(x.data(), y.data(), out.data(), n);
      CHECK_THAT(array(out.values()), HasBitsOf(array(larger)));
      std::copy(y.begin(), y.end(), out.data());
      arch->add_scaled_row(x.data(), 0.7F, out.data(), n);
      CHECK_THAT(array(out.values()), HasBitsOf(array(sums)));
      CHECK(out.untouched_outside());
      for (const float direction : {1.0F, -1.0F}) {
        Guarded rotated(2 * n, n % 4);
        std::copy(pairs.begin(), pairs.end(), rotated.data());
        arch->rotate_row(rotated.data(), cos.data(), sin.data(), direction, n);
        CHECK_THAT(array(rotated.values()), HasBitsOf(array(direction > 0 ? there : back)));
        CHECK(rotated.untouched_outside());
      }
    }
}

TEST_CASE("dot agrees with float64, and zeros at the end do not change its bits", "[kernels]") {
  for (const KernelTable* const arch : architectures())
    for (std::size_t n = 0; n <= 70; ++n) {
      INFO(arch->architecture << ", seed " << n << ", n " << n);
      Generator random(n);
      std::vector<float> x(n), y(n);
      Sum sum;
      for (std::size_t i = 0; i < n; ++i) {
        x[i] = random.normal();
        y[i] = random.normal();
        sum.add(x[i], 0, y[i], 0);
      }
      const float got = arch->dot(x.data(), y.data(), n);
      CHECK(std::abs(got - sum.value()) <= sum.error());
      Guarded left(n, n % 4), right(n, (n + 1) % 4);
      std::copy(x.begin(), x.end(), left.data());
      std::copy(y.begin(), y.end(), right.data());
      CHECK(arch->dot(left.data(), right.data(), n) == got);
      x.resize(n + 9, 0);
      y.resize(n + 9, 5);
      CHECK(arch->dot(x.data(), y.data(), n + 9) == got);
    }
}

struct NormCase {
  std::vector<float> x, weight, bias;  ///< may be empty
  float eps;
  bool rms;
};

Array norm_of(const KernelTable& table, const NormCase& c, std::size_t offset, bool in_place) {
  const std::size_t n = c.x.size();
  Guarded out(n, offset), in(n, (offset + 1) % 4);
  float* const x = in_place ? out.data() : in.data();
  std::copy(c.x.begin(), c.x.end(), x);
  const float *weight = c.weight.empty() ? nullptr : c.weight.data(), *bias = c.bias.empty() ? nullptr : c.bias.data();
  if (c.rms)
    table.rms_norm_row(x, weight, c.eps, out.data(), n);
  else
    table.layer_norm_row(x, weight, bias, c.eps, out.data(), n);
  CHECK(out.untouched_outside());
  return Array({static_cast<std::int64_t>(n)}, out.values());
}

TEST_CASE("layer_norm_row and rms_norm_row agree with float64 for every length and alignment, also in place", "[kernels]") {
  std::uint64_t seed = 0;
  for (std::size_t n = 1; n <= 70; n += n < 40 ? 1 : 7)
    for (const float offset : {0.0F, 3.0F, 1e4F, -1e6F})
      for (const int parts : {0, 1, 2, 3}) {
        Generator random(++seed);
        const bool rms = random.coin(0.4) && parts < 2;
        NormCase c{std::vector<float>(n), {}, {}, random.coin(0.5) ? 1e-5F : 1e-12F, rms};
        for (float& value : c.x) value = offset + random.normal();
        for (std::vector<float>* parameter : {&c.weight, &c.bias})
          if ((parts & (parameter == &c.weight ? 1 : 2)) != 0)
            for (std::size_t i = 0; i < n; ++i) parameter->push_back(random.normal());
        const Estimate expected = reference_norm(c.x, c.weight, c.bias, c.eps, rms);
        for (const KernelTable* const arch : architectures()) {
          INFO(arch->architecture << ", seed " << seed << ", n " << n << ", around " << offset << ", weight " << !c.weight.empty() << ", bias "
                                  << !c.bias.empty() << ", rms " << rms << ", eps " << c.eps);
          const Array y = norm_of(*arch, c, n % 4, false);
          CHECK_THAT(y, IsCloseTo(expected));
          CHECK_THAT(norm_of(*arch, c, (n + 1) % 4, true), HasBitsOf(y));
        }
      }
}

TEST_CASE("norms of a constant row are the bias, of NaN or infinity NaN, of an empty row empty", "[kernels]") {
  for (const KernelTable* const arch : architectures())
    for (const bool rms : {false, true}) {
      INFO(arch->architecture << ", rms " << rms);
      const KernelTable& table = *arch;
      CHECK(norm_of(table, {{}, {}, {}, 1e-5F, rms}, 1, false).data.empty());
      const std::vector<float> bias{1, 2, 3, 4, 5, 6, 7};
      if (!rms) CHECK_THAT(norm_of(table, {std::vector<float>(7, -12.5F), bias, bias, 1e-12F, rms}, 1, false), HasBitsOf(Array({7}, bias)));
      CHECK_THAT(norm_of(table, {{0, 0, 0}, {}, {}, 1e-5F, rms}, 1, false), HasBitsOf(Array({3}, {0, 0, 0})));
      CHECK_THAT(norm_of(table, {{1, kNaN, 3}, {}, {}, 1e-5F, rms}, 1, false), HasBitsOf(Array({3}, {kNaN, kNaN, kNaN})));
      // As in torch, rms_norm gives NaN only for inf / inf.
      const std::vector<float> infinite = rms ? std::vector<float>{0, kNaN, 0} : std::vector<float>{kNaN, kNaN, kNaN};
      CHECK_THAT(norm_of(table, {{1, kInfinity, 3}, {}, {}, 1e-5F, rms}, 1, false), HasBitsOf(Array({3}, infinite)));
    }
}

TEST_CASE("additive_scores_row agrees with float64 for every width, stride and number of keys", "[kernels]") {
  for (std::size_t width = 0; width <= 35; ++width)
    for (const std::size_t count : {0U, 1U, 5U}) {
      Generator random(width * 8 + count);
      const std::size_t stride = width + random.next() % 5;
      const float alpha = random.coin(0.5) ? 1 : -0.3F;
      std::vector<float> query(width), weight(width), keys(count * stride + width, kNaN);
      for (float& value : query) value = random.normal();
      for (float& value : weight) value = random.normal();
      Estimate expected({static_cast<std::int64_t>(count)});
      for (std::size_t j = 0; j < count; ++j) {
        Sum sum;
        for (std::size_t a = 0; a < width; ++a) {
          const float key = keys[j * stride + a] = 2 * random.normal();
          const double argument = static_cast<double>(query[a]) + key, tanh = std::tanh(argument);
          // 2 ulp of tanh, and its rounded argument, where the slope is below 1.
          sum.add(weight[a], 0, tanh, 2 * kEps * std::abs(tanh) + std::abs(argument) * (1 - tanh * tanh) * kEps / 2);
        }
        expected.value[j] = alpha * sum.value();
        expected.error[j] = std::abs(alpha) * sum.error();
      }
      for (const KernelTable* const arch : architectures()) {
        INFO(arch->architecture << ", seed " << width * 8 + count << ", width " << width << ", stride " << stride << ", keys " << count);
        Guarded out(count, width % 4);
        const auto run = [&] {
          arch->additive_scores_row(query.data(), keys.data(), static_cast<std::ptrdiff_t>(stride), weight.data(), out.data(), count, width, alpha);
          return Array(expected.dims, out.values());
        };
        const Array scores = run();
        CHECK(out.untouched_outside());
        CHECK_THAT(scores, IsCloseTo(expected));
        if (count < 2 || width == 0) continue;
        const float old = std::exchange(keys[stride], kNaN);
        Array spoilt = run();
        keys[stride] = old;
        CHECK(std::isnan(spoilt.data[1]));
        spoilt.data[1] = scores.data[1];
        CHECK_THAT(spoilt, HasBitsOf(scores));
      }
    }
}

TEST_CASE("philox gives Random123's known answers", "[kernels]") {
  using Words = std::array<std::uint32_t, 4>;
  CHECK(kernels::philox({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(kernels::philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(kernels::philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("the table in use is the widest that this machine can run", "[kernels]") {
  CHECK(&kernels::best() == architectures().back());
  if (const char* const asked = std::getenv("ATTN_MAX_ARCH"))
    for (const KernelTable* const table : architectures())
      if (std::string_view(table->architecture) == asked) CHECK(kernels::best().architecture == std::string_view(asked));
#if defined(__x86_64__)
  constexpr std::string_view kCompiled[] = {
#define ATTN_KERNELS(name, ...) #name,
#define ATTN_INT8(name, ...) #name,
#include "architectures.inc"
  };
  const auto is_compiled = [&](std::string_view name) { return std::find(std::begin(kCompiled), std::end(kCompiled), name) != std::end(kCompiled); };
  if (std::getenv("ATTN_MAX_ARCH") != nullptr || !is_compiled("avx2_fma") || !is_compiled("avx512_vnni")) return;
  const bool avx512 = __builtin_cpu_supports("avx512bw"), avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const std::string_view widest = kernels::best().architecture;
  CHECK(widest.starts_with("avx512") == avx512);
  CHECK(widest.starts_with("avx") == avx2);
  if (avx512) CHECK((widest == "avx512_vnni") == static_cast<bool>(__builtin_cpu_supports("avx512vnni")));
#endif
}

}  // namespace kernels_kernels_test
}  // namespace attn::test
