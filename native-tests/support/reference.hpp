#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "support/array.hpp"
#include "support/attention_case.hpp"

// float64, with error bounds for float32: a sum of K terms errs by at most √K · eps · Σ|terms|.
namespace attn::test {

struct Estimate {
  Shape dims;
  std::vector<double> value, error;

  Estimate() = default;
  explicit Estimate(const Shape& shape) : dims(shape), value(size_of(shape)), error(size_of(shape)) {}
  explicit Estimate(const Array& x) : dims(x.dims), value(x.data.begin(), x.data.end()), error(x.data.size(), 0.0) {}
};

inline Estimate reshaped(Estimate x, const Shape& dims) {
  x.dims = dims;
  return x;
}

class Sum {
 public:
  void add(double a, double a_error, double b, double b_error) {
    value_ += a * b;
    magnitude_ += std::abs(a * b);
    inherited_ += std::abs(a) * b_error + std::abs(b) * a_error;
    ++terms_;
  }
  double value() const { return value_; }
  /// One more rounding for a factor.
  double error() const { return std::sqrt(terms_ + 1.0) * kEps * magnitude_ + inherited_ + (terms_ + 1.0) * kSmallestDenormal; }

 private:
  double value_ = 0, magnitude_ = 0, inherited_ = 0;
  int terms_ = 0;
};

inline Estimate reference_linear(const Estimate& x, const Array& weight, const Array* bias) {
  const auto out = static_cast<std::size_t>(weight.dims[0]), in = static_cast<std::size_t>(weight.dims[1]);
  Shape dims = x.dims;
  dims[dims.rank() - 1] = weight.dims[0];
  Estimate y(dims);
  for (std::size_t i = 0; i < size_of(dims) / std::max<std::size_t>(out, 1); ++i)
    for (std::size_t o = 0; o < out; ++o) {
      Sum sum;
      if (bias != nullptr) sum.add(bias->data[o], 0, 1, 0);
      for (std::size_t p = 0; p < in; ++p) sum.add(x.value[i * in + p], x.error[i * in + p], weight.data[o * in + p], 0);
      y.value[i * out + o] = sum.value();
      y.error[i * out + o] = sum.error();
    }
  return y;
}

inline void reference_softmax(const double* x, const double* x_error, const std::vector<bool>& allowed, double* y, double* y_error) {
  const std::size_t n = allowed.size();
  double most = -kInfinity, most_error = 0, count = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (!allowed[i]) continue;
    ++count;
    most = std::isnan(x[i]) ? x[i] : std::max(most, x[i]);
    most_error = std::max(most_error, x_error[i]);
  }
  double sum = 0, relative_of_sum = 0;
  std::vector<double> relative(n, 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    y[i] = allowed[i] ? std::exp(x[i] - most) : 0;
    sum += y[i];
    if (!allowed[i] || !(y[i] > 0)) continue;
    // The difference to the maximum rounds once; exp errs by 1 ulp.
    relative[i] = std::expm1(x_error[i] + most_error + std::abs(x[i] - most) * kEps / 2) + kEps;
    relative_of_sum += y[i] * relative[i];
  }
  for (std::size_t i = 0; i < n; ++i) {
    // Terms that may be subnormal may be 0.
    const double flushed = y[i] * (1 - relative[i]) < kSmallestNormal ? y[i] / sum : 0;
    y[i] = allowed[i] ? y[i] / sum : 0;
    const double error = y[i] * (relative[i] + relative_of_sum / sum + (std::sqrt(count) + 1) * kEps) + flushed + 2 * kSmallestDenormal;
    y_error[i] = allowed[i] ? std::min(1.0, error) : 0;
  }
}

struct ReferenceAttention {
  Estimate scores, masked_scores, weights;  // (B,H,L,S)
  Estimate weighted_values;                 // (B,H,L,S,Dv)
  Estimate context;                         // (B,H,L,Dv)
};

/// dims (S), (L,S), (B,L,S) or (B,H,L,S), where B, H, L may be 1; `padding`: (B,S).
inline float mask_at(const MaskInput& mask, bool padding, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  const Shape& dims = mask.data.dims;
  std::vector<std::int64_t> index;
  if (padding && dims.rank() == 2)
    index = {b, j};
  else if (dims.rank() == 1)
    index = {j};
  else if (dims.rank() == 2)
    index = {i, j};
  else if (dims.rank() == 3)
    index = {b, i, j};
  else
    index = {b, h, i, j};
  std::int64_t at = 0;
  for (std::size_t axis = 0; axis < dims.rank(); ++axis) at = at * dims[axis] + (dims[axis] == 1 ? 0 : index[axis]);
  return mask.data.data[static_cast<std::size_t>(at)];
}

/// scores (B,H,L,S), scaled; v (B,Hkv,S,Dv).
inline ReferenceAttention reference_attention_of_scores(const Estimate& scores, const Estimate& v, const AttentionCase& c) {
  const std::int64_t B = scores.dims[0], H = scores.dims[1], L = scores.dims[2], S = scores.dims[3], Hkv = v.dims[1], Dv = v.dims[3];
  ReferenceAttention r{scores, Estimate({B, H, L, S}), Estimate({B, H, L, S}), Estimate({B, H, L, S, Dv}), Estimate({B, H, L, Dv})};
  for (std::int64_t b = 0; b < B; ++b)
    for (std::int64_t h = 0; h < H; ++h)
      for (std::int64_t i = 0; i < L; ++i) {
        const std::int64_t kv = b * Hkv + h / (H / Hkv);
        const auto row = static_cast<std::size_t>(((b * H + h) * L + i));
        const auto at = row * static_cast<std::size_t>(S);
        std::vector<bool> allowed(static_cast<std::size_t>(S));
        bool any = false;
        for (std::int64_t j = 0; j < S; ++j) {
          const auto s = at + static_cast<std::size_t>(j);
          const std::int64_t distance = j - i - c.query_offset;
          bool open = !(c.is_causal && distance > 0) && !(c.window.left >= 0 && -distance > c.window.left) &&
                      !(c.window.right >= 0 && distance > c.window.right);
          double added = 0;
          for (const bool padding : {false, true}) {
            const std::optional<MaskInput>& mask = padding ? c.key_padding_mask : c.mask;
            if (!mask) continue;
            const float entry = mask_at(*mask, padding, b, h, i, j);
            if (mask->kind == MaskKind::additive) {
              open = open && entry != -kInfinity;
              added += entry;
            } else {
              open = open && (entry != 0) == (mask->kind == MaskKind::attend);
            }
          }
          r.masked_scores.value[s] = open ? r.scores.value[s] + added : -kInfinity;
          r.masked_scores.error[s] = open ? r.scores.error[s] + kEps * (std::abs(r.scores.value[s]) + 2 * std::abs(added)) : 0;
          allowed[static_cast<std::size_t>(j)] = open;
          any = any || open;
        }

        reference_softmax(r.masked_scores.value.data() + at, r.masked_scores.error.data() + at, allowed, r.weights.value.data() + at,
                          r.weights.error.data() + at);
        const bool nan = !any && c.fully_masked == FullyMasked::nan;
        if (!any && c.fully_masked == FullyMasked::uniform) {
          allowed.assign(allowed.size(), true);
          for (std::int64_t j = 0; j < S; ++j) {
            r.weights.value[at + static_cast<std::size_t>(j)] = 1 / static_cast<double>(S);
            r.weights.error[at + static_cast<std::size_t>(j)] = kEps / static_cast<double>(S);
          }
        }

        std::vector<Sum> sums(static_cast<std::size_t>(Dv));
        for (std::size_t j = 0; j < allowed.size(); ++j) {
          if (nan) r.weights.value[at + j] = kNaN;
          for (std::size_t d = 0; d < sums.size(); ++d) {
            const std::size_t term = (at + j) * sums.size() + d, from = (static_cast<std::size_t>(kv * S) + j) * sums.size() + d;
            if (nan) r.weighted_values.value[term] = kNaN;
            if (!allowed[j]) continue;
            const double w = r.weights.value[at + j], w_error = r.weights.error[at + j];
            r.weighted_values.value[term] = w * v.value[from];
            r.weighted_values.error[term] =
                std::abs(w) * v.error[from] + std::abs(v.value[from]) * w_error + kEps * std::abs(w * v.value[from]) + kSmallestDenormal;
            sums[d].add(w, w_error, v.value[from], v.error[from]);
          }
        }
        for (std::size_t d = 0; d < sums.size(); ++d) {
          r.context.value[row * sums.size() + d] = nan ? kNaN : sums[d].value();
          r.context.error[row * sums.size() + d] = sums[d].error();
        }
      }
  return r;
}

/// q (B,H,L,D), k (B,Hkv,S,D), v (B,Hkv,S,Dv).
inline ReferenceAttention reference_attention(const Estimate& q, const Estimate& k, const Estimate& v, const AttentionCase& c) {
  const std::int64_t B = q.dims[0], H = q.dims[1], L = q.dims[2], D = q.dims[3], Hkv = k.dims[1], S = k.dims[2];
  const double scale = c.scale ? *c.scale : 1 / std::sqrt(static_cast<double>(D));
  Estimate scores({B, H, L, S});
  for (std::int64_t b = 0; b < B; ++b)
    for (std::int64_t h = 0; h < H; ++h)
      for (std::int64_t i = 0; i < L; ++i)
        for (std::int64_t j = 0; j < S; ++j) {
          const std::int64_t kv = b * Hkv + h / (H / Hkv), row = (b * H + h) * L + i;
          const auto s = static_cast<std::size_t>(row * S + j);
          Sum dot;
          for (std::int64_t d = 0; d < D; ++d) {
            const auto left = static_cast<std::size_t>(row * D + d), right = static_cast<std::size_t>((kv * S + j) * D + d);
            dot.add(q.value[left], q.error[left], k.value[right], k.error[right]);
          }
          scores.value[s] = dot.value() * scale;
          scores.error[s] = dot.error() * std::abs(scale) + kSmallestDenormal;
          if (c.softcap == 0) continue;
          // The slope is at most 1; quotient, tanh (1.4 ulp), product and inverse of the cap also round.
          const double cap = static_cast<double>(c.softcap), capped = cap * std::tanh(scores.value[s] / cap);
          scores.error[s] += kEps * (2 * std::abs(scores.value[s]) + 3 * std::abs(capped)) + kSmallestDenormal;
          scores.value[s] = capped;
        }
  return reference_attention_of_scores(scores, v, c);
}

inline Estimate with_heads(const Array& x) {
  const std::size_t rank = x.dims.rank();
  return reshaped(Estimate(x), {rank >= 3 ? x.dims[0] : 1, rank == 4 ? x.dims[1] : 1, x.dims.back(1), x.dims.back(0)});
}

inline ReferenceAttention without_heads(ReferenceAttention r, std::size_t rank) {
  for (Estimate* x : {&r.scores, &r.masked_scores, &r.weights, &r.weighted_values, &r.context}) {
    Shape dims;
    for (std::size_t axis = 0; axis < x->dims.rank(); ++axis)
      if (!(rank < 4 && axis == 1) && !(rank < 3 && axis == 0)) dims.push_back(x->dims[axis]);
    x->dims = dims;
  }
  return r;
}

inline ReferenceAttention reference_attention(const AttentionCase& c) {
  return without_heads(reference_attention(with_heads(c.query), with_heads(c.key), with_heads(c.value), c), c.query.dims.rank());
}

inline Estimate mean_of_heads(const Estimate& weights) {
  const Shape& dims = weights.dims;
  Estimate mean({dims[0], 1, dims[2], dims[3]});
  const auto H = static_cast<std::size_t>(dims[1]), size = static_cast<std::size_t>(dims[2] * dims[3]);
  for (std::size_t b = 0; b < static_cast<std::size_t>(dims[0]); ++b)
    for (std::size_t i = 0; i < size; ++i) {
      Sum sum;
      for (std::size_t h = 0; h < H; ++h) sum.add(weights.value[(b * H + h) * size + i], weights.error[(b * H + h) * size + i], 1, 0);
      mean.value[b * size + i] = sum.value() / static_cast<double>(H);
      mean.error[b * size + i] = sum.error() / static_cast<double>(H);
    }
  return mean;
}

/// Empty biases: none; empty out: no output projection.
struct ReferenceWeights {
  Array query, key, value, out;
  Array query_bias, key_bias, value_bias, out_bias;
};

struct ReferenceMultiHeadAttention {
  Estimate q_proj, k_proj, v_proj;  // (B,L|S,E)
  Estimate q, k, v;                 // (B,H,L|S,D)
  ReferenceAttention attention;
  Estimate merged, output;  // (B,L,E)
};

inline Estimate split_heads(const Estimate& x, std::int64_t H) {
  const std::int64_t B = x.dims[0], rows = x.dims[1], D = x.dims[2] / H;
  Estimate y({B, H, rows, D});
  for (std::int64_t b = 0; b < B; ++b)
    for (std::int64_t h = 0; h < H; ++h)
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t d = 0; d < D; ++d) {
          const auto from = static_cast<std::size_t>((b * rows + i) * H * D + h * D + d),
                     to = static_cast<std::size_t>(((b * H + h) * rows + i) * D + d);
          y.value[to] = x.value[from];
          y.error[to] = x.error[from];
        }
  return y;
}

inline Estimate merge_heads(const Estimate& x) {
  const std::int64_t B = x.dims[0], H = x.dims[1], rows = x.dims[2], D = x.dims[3];
  Estimate y({B, rows, H * D});
  for (std::int64_t b = 0; b < B; ++b)
    for (std::int64_t h = 0; h < H; ++h)
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t d = 0; d < D; ++d) {
          const auto to = static_cast<std::size_t>((b * rows + i) * H * D + h * D + d),
                     from = static_cast<std::size_t>(((b * H + h) * rows + i) * D + d);
          y.value[to] = x.value[from];
          y.error[to] = x.error[from];
        }
  return y;
}

/// query (B,L,E), key (B,S,kdim), value (B,S,vdim).
inline ReferenceMultiHeadAttention reference_multi_head_attention(const Estimate& query, const Estimate& key, const Estimate& value,
                                                                  const AttentionCase& c, std::int64_t num_heads, const ReferenceWeights& w) {
  const auto bias = [](const Array& b) { return b.data.empty() ? nullptr : &b; };
  ReferenceMultiHeadAttention r;
  r.q_proj = reference_linear(query, w.query, bias(w.query_bias));
  r.k_proj = reference_linear(key, w.key, bias(w.key_bias));
  r.v_proj = reference_linear(value, w.value, bias(w.value_bias));
  r.q = split_heads(r.q_proj, num_heads);
  r.k = split_heads(r.k_proj, num_heads);
  r.v = split_heads(r.v_proj, num_heads);
  r.attention = reference_attention(r.q, r.k, r.v, c);
  r.merged = merge_heads(r.attention.context);
  r.output = w.out.data.empty() ? r.merged : reference_linear(r.merged, w.out, bias(w.out_bias));
  return r;
}

inline ReferenceMultiHeadAttention reference_multi_head_attention(const AttentionCase& c, std::int64_t num_heads, const ReferenceWeights& w) {
  return reference_multi_head_attention(Estimate(c.query), Estimate(c.key), Estimate(c.value), c, num_heads, w);
}

}  // namespace attn::test
