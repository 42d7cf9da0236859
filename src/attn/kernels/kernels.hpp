#pragma once

#include <cstddef>
#include <cstdint>

#include "attn/kernels/activation_name.hpp"

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "attn has to be compiled with -fno-fast-math: blocked keys are infinities, and sums have one order"
#endif

namespace attn::kernels {

/// C = alpha · (b + A Wᵀ): A (m,k) rows lda apart, W packed, b (n) or null, C (m,n) rows ldc apart. Weight is how W is kept.
template <class Weight>
struct Gemm {
  const float* a = nullptr;
  std::ptrdiff_t lda = 0;
  const Weight* panels = nullptr;  ///< as pack() leaves them
  std::size_t panel_stride = 0;    ///< panel_size() of what was packed; k may be smaller, then only that many terms are summed
  const float* bias = nullptr;
  float* c = nullptr;
  std::ptrdiff_t ldc = 0;
  std::size_t m = 0, n = 0, k = 0;
  float alpha = 1;
  bool accumulate = false;      ///< begin with what is in C instead of b
  const float* skip = nullptr;  ///< (k), of m = 1: terms where it is -infinity are left out
};

/// C[i][j] = (Σₖ A[i][k] · W[j][k] - corrections[i] · weight_sums[j]) · scales[i] · weight_scales[j] + bias[j], the difference exact, what
/// follows rounded at each step: the same bits on every architecture.
struct GemmInt8 {
  const std::int32_t* a = nullptr;  ///< m · int8_words(), each row at its int8_place(); scales and corrections (m) as quantize_row leaves them
  const float* scales = nullptr;
  const std::int32_t* corrections = nullptr;
  const std::int8_t* panels = nullptr;  ///< as pack_int8_row leaves them
  const float* weight_scales = nullptr;
  const std::int32_t* weight_sums = nullptr;  ///< Σₖ W[j][k]
  const float* bias = nullptr;
  float* c = nullptr;
  std::size_t ldc = 0;
  std::size_t m = 0, n = 0, k = 0;
};

/// Products of int8 weights with rows that are quantized when they meet them.
struct Int8Kernels {
  const char* name;   ///< of the products, in words
  std::size_t mr;     ///< rows of a tile
  std::size_t group;  ///< so many of k lie side by side in 4 bytes: 2 or 4

  /// s = max(0, max x) / 255 - min(0, min x) / 255, z = nearest(-min / s), q = nearest(x / s) + z, both cut to 0 ... 255, as words of this
  /// architecture's, `step` apart; s the scale. Where s is 0, q - z is 0. A row with NaN or infinity has the scale NaN.
  void (*quantize_row)(const float* x, std::size_t k, std::int32_t* words, std::size_t step, float* scale, std::int32_t* correction);
  void (*gemm)(const GemmInt8&);
  /// As KernelTable::multiply_adds, of int8.
  std::size_t (*multiply_adds)(std::size_t count);
};

/// The kernels of one architecture. None throws, none allocates; pointers need no alignment.
struct KernelTable {
  const char* architecture;
  std::size_t mr, nr;  ///< rows and columns of a GEMM tile; panels are nr wide

  void (*gemm)(const Gemm<float>&);
  Int8Kernels int8;

  /// y = softmax(x) over n values; x and y may be the same. A row that is all -infinity gives NaN.
  void (*softmax_row)(const float* x, float* y, std::size_t n);
  /// The largest of n values, -infinity where there is none; NaN is passed over.
  float (*max_row)(const float* x, std::size_t n);
  /// y = exp(x - shift), shift at least as large as every x; x and y may be the same. Returns Σ y.
  float (*exp_row)(const float* x, float shift, float* y, std::size_t n);
  /// y = x + bias, -infinity wherever bias is, whatever x is there.
  void (*mask_row)(const float* x, const float* bias, float* y, std::size_t n);
  /// y = alpha · x
  void (*scale_row)(const float* x, float alpha, float* y, std::size_t n);
  /// Whether none of the n values times alpha is NaN or infinite.
  bool (*all_finite)(const float* x, float alpha, std::size_t n);

  /// y = f(x); x and y may be the same.
  void (*activation_row)(Activation, const float* x, float* y, std::size_t n);
  /// y = (x - mean) / √(variance + eps) · weight + bias, biased variance; weight, bias may be null, x and y the same.
  void (*layer_norm_row)(const float* x, const float* weight, const float* bias, float eps, float* y, std::size_t n);
  /// y = x / √(mean of x² + eps) · weight; weight may be null, x and y the same.
  void (*rms_norm_row)(const float* x, const float* weight, float eps, float* y, std::size_t n);
  /// sum = x + y; any of them may be the same.
  void (*add_row)(const float* x, const float* y, float* sum, std::size_t n);
  /// product = x · y, element by element; any of them may be the same.
  void (*multiply_row)(const float* x, const float* y, float* product, std::size_t n);
  /// Σ x · y
  float (*dot)(const float* x, const float* y, std::size_t n);
  /// scores[j] = alpha · Σₐ score_weight[a] · tanh(query[a] + keys[j · key_stride + a]), a < width.
  void (*additive_scores_row)(const float* query, const float* keys, std::ptrdiff_t key_stride, const float* score_weight, float* scores,
                              std::size_t keys_count, std::size_t width, float alpha);

  /// The table whose results have the same bits on every architecture: nothing in it is fused, and sums run in 16 lanes. Products of int8
  /// have them in both. Its own is null.
  const KernelTable* everywhere;

  /// Runs `count` multiply-adds or a few more in registers alone and gives their number: timed, the peak of the machine.
  std::size_t (*multiply_adds)(std::size_t count);
};

/// The fastest table that this machine can run, chosen once.
const KernelTable& best();
/// The same, or its table for the bits that all architectures have.
inline const KernelTable& best(bool everywhere) { return everywhere ? *best().everywhere : best(); }

// Functions of numbers alone that the kernels call are static: one that the linker merges might be taken from another architecture's object.

/// Weights of one packed panel: k rows of nr.
static constexpr std::size_t panel_size(std::size_t nr, std::size_t k) { return nr * k; }
static constexpr std::size_t packed_size(std::size_t nr, std::size_t n, std::size_t k) { return (n + nr - 1) / nr * panel_size(nr, k); }

/// Packs W (n,k), element (i,j) at w[i·row_stride + j·column_stride], as ceil(n/nr) panels k × nr; columns past n are zero.
void pack(const float* w, std::ptrdiff_t row_stride, std::ptrdiff_t column_stride, std::size_t n, std::size_t k, std::size_t nr, float* panels);
/// One row of W into panels that are there.
void pack_row(const float* w, std::size_t row, std::size_t k, std::size_t nr, float* panels);
/// The inverse of pack: w (n,k), row-major.
void unpack(const float* panels, std::size_t n, std::size_t k, std::size_t nr, float* w);
/// One row of W.
void unpack_row(const float* panels, std::size_t row, std::size_t k, std::size_t nr, float* w);
/// The panels of W (n,k) -> those of Wᵀ (k,n) from its row `first` on, a multiple of nr, up to `end`.
void pack_transposed(const float* panels, std::size_t n, std::size_t k, std::size_t nr, std::size_t first, std::size_t end, float* transposed);
/// x (m,n), rows row_stride apart -> (n,m), rows to_stride apart.
void transpose(const float* x, std::size_t row_stride, std::size_t m, std::size_t n, float* to, std::size_t to_stride);

/// q of one row of int8 weights, and its scale max|w| / 127: q = nearest(w / scale), cut to ±127; where the scale is 0, q is 0. The values
/// are finite. Returns Σ q.
std::int32_t quantize_weights(const float* w, std::size_t k, std::int8_t* q, float* scale);

/// 255 · 128 · k is below 2³¹.
inline constexpr std::int64_t kMostInt8Terms = 65536;

/// m rows in tiles of as equal a height as can be, at most mr: 128 = 18 · 6 + 4 · 5 keeps every tile near its full speed.
struct Tiling {
  [[gnu::always_inline]] constexpr Tiling(std::size_t m, std::size_t mr)
      : tiles((m + mr - 1) / mr), height(tiles > 0 ? m / tiles : 0), taller(tiles > 0 ? m % tiles : 0) {}

  std::size_t tiles, height, taller;  ///< the first `taller` have a row more than height
};

/// Where the words of a row of activations begin, and how far they are apart: those of a tile's rows lie side by side, so that a tile reads
/// all of them by one address.
struct Int8Place {
  std::size_t first, step;
};
static constexpr Int8Place int8_place(const Tiling& rows, std::size_t row, std::size_t words) {
  const std::size_t in_taller = rows.taller * (rows.height + 1);
  const bool taller = row < in_taller;
  const std::size_t step = taller ? rows.height + 1 : rows.height, in_tile = (taller ? row : row - in_taller) % step;
  return {(row - in_tile) * words + in_tile, step};
}

/// Words of a row of activations, and bytes of a panel.
static constexpr std::size_t int8_words(std::size_t group, std::size_t k) { return (k + group - 1) / group; }
static constexpr std::size_t int8_panel_size(std::size_t nr, std::size_t group, std::size_t k) { return int8_words(group, k) * group * nr; }
static constexpr std::size_t int8_packed_size(std::size_t nr, std::size_t group, std::size_t n, std::size_t k) {
  return (n + nr - 1) / nr * int8_panel_size(nr, group, k);
}
/// One row of W (n,k) into panels that are there and were zero.
void pack_int8_row(const std::int8_t* q, std::size_t row, std::size_t k, std::size_t nr, std::size_t group, std::int8_t* panels);
void unpack_int8_row(const std::int8_t* panels, std::size_t row, std::size_t k, std::size_t nr, std::size_t group, std::int8_t* q);

}  // namespace attn::kernels
