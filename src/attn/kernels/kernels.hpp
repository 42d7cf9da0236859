#pragma once

#include <cstddef>
#include <cstdint>

#include "attn/kernels/activation_name.hpp"

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "attn has to be compiled with -fno-fast-math: blocked keys are infinities, and sums have one order"
#endif

namespace attn::kernels {

/// C = alpha · (b + A Wᵀ): A (m,k) with row stride lda, W (n,k) packed, b (n) or null, C (m,n) with row stride ldc.
template <class Weight>
struct Gemm {
  const float* a = nullptr;
  std::ptrdiff_t lda = 0;
  const Weight* panels = nullptr;  ///< packed by pack()
  std::size_t panel_stride = 0;    ///< panel_size() of the packed W; a smaller k sums only the first k terms
  const float* bias = nullptr;
  float* c = nullptr;
  std::ptrdiff_t ldc = 0;
  std::size_t m = 0, n = 0, k = 0;
  float alpha = 1;
  bool accumulate = false;               ///< start from C instead of b
  const float* blocked_terms = nullptr;  ///< (k), only if m = 1: a term whose entry is -infinity is skipped
};

/// C[i][j] = (Σₖ A[i][k] · W[j][k] - corrections[i] · weight_sums[j]) · scales[i] · weight_scales[j] + bias[j]. The
/// difference is exact and later operations are rounded, so all architectures give the same bits.
struct GemmInt8 {
  const std::int32_t* a = nullptr;  ///< m · int8_words(), each row at its int8_row_layout()
  const float* scales = nullptr;    ///< (m), like corrections from quantize_row
  const std::int32_t* corrections = nullptr;
  const std::int8_t* panels = nullptr;  ///< packed by pack_int8_row()
  const float* weight_scales = nullptr;
  const std::int32_t* weight_sums = nullptr;  ///< Σₖ W[j][k]
  const float* bias = nullptr;
  float* c = nullptr;
  std::size_t ldc = 0;
  std::size_t m = 0, n = 0, k = 0;
};

/// int8 weights times activations that are quantized on the fly.
struct Int8Kernels {
  const char* name;   ///< of the multiplication
  std::size_t mr;     ///< rows per tile
  std::size_t group;  ///< consecutive k in a 4-byte word: 2 or 4

  /// s = max(0, max x) / 255 - min(0, min x) / 255, z = nearest(-min / s), q = nearest(x / s) + z, with z and q limited
  /// to 0 ... 255. Writes words `step` apart. If s is 0, q - z is 0. If x is not finite, the scale is NaN.
  void (*quantize_row)(const float* x, std::size_t k, std::int32_t* words, std::size_t step, float* scale, std::int32_t* correction);
  void (*gemm)(const GemmInt8&);
  std::size_t (*multiply_adds)(std::size_t count);
};

/// Kernels do not throw or allocate, pointers need no alignment, and y, sum, product or maximum may be an input.
struct KernelTable {
  const char* architecture;
  std::size_t mr, nr;  ///< of a GEMM tile; panels are nr columns wide

  void (*gemm)(const Gemm<float>&);
  Int8Kernels int8;

  /// NaN if all values are -infinity.
  void (*softmax_row)(const float* x, float* y, std::size_t n);
  /// Ignores NaN; -infinity if n is 0.
  float (*max_row)(const float* x, std::size_t n);
  /// y = exp(x - shift), shift ≥ max x. Returns Σ y.
  float (*exp_row)(const float* x, float shift, float* y, std::size_t n);
  /// y = x + bias, or -infinity if bias is -infinity, even if x is NaN.
  void (*mask_row)(const float* x, const float* bias, float* y, std::size_t n);
  void (*scale_row)(const float* x, float alpha, float* y, std::size_t n);
  /// Whether all values times alpha are finite.
  bool (*all_finite)(const float* x, float alpha, std::size_t n);

  void (*activation_row)(Activation, const float* x, float* y, std::size_t n);
  /// y = (x - mean) / √(variance + eps) · weight + bias (biased variance; weight and bias may be null)
  void (*layer_norm_row)(const float* x, const float* weight, const float* bias, float eps, float* y, std::size_t n);
  /// y = x / √(mean of x² + eps) · weight (may be null)
  void (*rms_norm_row)(const float* x, const float* weight, float eps, float* y, std::size_t n);
  void (*divide_row)(const float* x, float divisor, float* y, std::size_t n);
  /// NaN if x or y is NaN.
  void (*maximum_row)(const float* x, const float* y, float* maximum, std::size_t n);
  /// Rotates (x[i], x[n + i]) by the angle with cos[i] and sin[i]; direction -1 rotates back.
  void (*rotate_row)(float* x, const float* cos, const float* sin, float direction, std::size_t n);
  /// q = nearest(w / scale), scale = max|w| / 127, limited to ±127; 0 if the scale is 0. w must be finite. Returns Σ q.
  std::int32_t (*quantize_weights)(const float* w, std::size_t k, std::int8_t* q, float* scale);
  void (*dequantize_row)(const std::int8_t* q, float scale, float* y, std::size_t n);
  /// Dropout: 0 if the upper 24 bits of word i % 4 of philox({i / 4, place}, key) are below threshold, else value ·
  /// factor.
  void (*drop_row)(float* values, std::size_t n, const std::uint32_t (&place)[3], const std::uint32_t (&key)[2], std::uint32_t threshold,
                   float factor);
  void (*add_row)(const float* x, const float* y, float* sum, std::size_t n);
  /// sum += alpha · x, with the product rounded.
  void (*add_scaled_row)(const float* x, float alpha, float* sum, std::size_t n);
  void (*multiply_row)(const float* x, const float* y, float* product, std::size_t n);
  float (*dot)(const float* x, const float* y, std::size_t n);
  /// scores[j] = alpha · Σₐ score_weight[a] · tanh(query[a] + keys[j · key_stride + a])
  void (*additive_scores_row)(const float* query, const float* keys, std::ptrdiff_t key_stride, const float* score_weight, float* scores,
                              std::size_t keys_count, std::size_t width, float alpha);

  /// No fused multiply-adds, sums in 16 lanes: the same bits on every architecture. Null in this variant itself.
  const KernelTable* reproducible;

  /// Runs `count` multiply-adds or a few more in registers and returns their number, to measure peak speed.
  std::size_t (*multiply_adds)(std::size_t count);
};

/// The fastest table for this machine, chosen once.
const KernelTable& best();
inline const KernelTable& best(bool reproducible) { return reproducible ? *best().reproducible : best(); }

// Static: the linker might merge inline functions into a copy compiled for another architecture.

static constexpr std::size_t panel_size(std::size_t nr, std::size_t k) { return nr * k; }
static constexpr std::size_t packed_size(std::size_t nr, std::size_t n, std::size_t k) { return (n + nr - 1) / nr * panel_size(nr, k); }

/// W (n,k), element (i,j) at w[i·row_stride + j·column_stride], becomes ceil(n/nr) panels [k, nr]; columns past n are
/// 0.
void pack(const float* w, std::ptrdiff_t row_stride, std::ptrdiff_t column_stride, std::size_t n, std::size_t k, std::size_t nr, float* panels);
/// w is (n,k), row-major.
void unpack(const float* panels, std::size_t n, std::size_t k, std::size_t nr, float* w);
/// Panels of rows [first, end) of Wᵀ (k,n) from those of W (n,k); first % nr == 0.
void pack_transposed(const float* panels, std::size_t n, std::size_t k, std::size_t nr, std::size_t first, std::size_t end, float* transposed);
/// Transposes x (m,n) to (n,m).
void transpose(const float* x, std::ptrdiff_t row_stride, std::size_t m, std::size_t n, float* to, std::size_t to_stride);

/// 255 · 128 · k must stay below 2³¹.
inline constexpr std::int64_t kMostInt8Terms = 65536;

/// Tiles of nearly equal height: 128 = 18 · 6 + 4 · 5 keeps each near its full speed.
struct RowTiles {
  [[gnu::always_inline]] constexpr RowTiles(std::size_t m, std::size_t mr)
      : tiles((m + mr - 1) / mr), height(tiles > 0 ? m / tiles : 0), taller(tiles > 0 ? m % tiles : 0) {}

  std::size_t tiles, height, taller;  ///< the first `taller` tiles have height + 1 rows
};

/// The rows of a tile are interleaved by word, so the kernel needs one base address.
struct Int8RowLayout {
  std::size_t first, step;
};
static constexpr Int8RowLayout int8_row_layout(const RowTiles& rows, std::size_t row, std::size_t words) {
  const std::size_t in_taller = rows.taller * (rows.height + 1);
  const bool taller = row < in_taller;
  const std::size_t step = taller ? rows.height + 1 : rows.height, in_tile = (taller ? row : row - in_taller) % step;
  return {(row - in_tile) * words + in_tile, step};
}

static constexpr std::size_t int8_words(std::size_t group, std::size_t k) { return (k + group - 1) / group; }
static constexpr std::size_t int8_panel_size(std::size_t nr, std::size_t group, std::size_t k) { return int8_words(group, k) * group * nr; }
static constexpr std::size_t int8_packed_size(std::size_t nr, std::size_t group, std::size_t n, std::size_t k) {
  return (n + nr - 1) / nr * int8_panel_size(nr, group, k);
}
/// Panels must be zero-initialized.
void pack_int8_row(const std::int8_t* q, std::size_t row, std::size_t k, std::size_t nr, std::size_t group, std::int8_t* panels);
/// Copies columns [first, first + count) of a row; first % group == 0.
void unpack_int8_row(const std::int8_t* panels, std::size_t row, std::size_t k, std::size_t nr, std::size_t group, std::size_t first,
                     std::size_t count, std::int8_t* q);

}  // namespace attn::kernels
