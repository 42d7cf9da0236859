#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace attn::detail {

/// Part of the random key. Only a checkpoint's probabilities activate the last four.
enum class DropoutSite : std::uint32_t {
  attention_weights,
  attention_output,
  hidden,
  feed_forward_output,
  embeddings,
  pooled,
  classifier,
  relative_positions
};

struct DropoutProbabilities {
  float attention_weights = 0, attention_output = 0;
  float hidden = 0;               ///< after the feed-forward activation
  float feed_forward_output = 0;  ///< before the residual addition
  float embeddings = 0;           ///< after the norm of the embeddings
  float pooled = 0;               ///< input of the head
  float classifier = 0;           ///< input of the head's last linear layer
  float relative_positions = 0;

  float at(DropoutSite site) const {
    const float all[] = {attention_weights, attention_output, hidden, feed_forward_output, embeddings, pooled, classifier, relative_positions};
    return all[static_cast<std::size_t>(site)];
  }
};

/// Inverted dropout (Srivastava et al. 2014; torch.nn.functional.dropout). Philox-4x32-10 of (seed, step, site, layer,
/// batch, head, query, key) chooses the values, so the result does not depend on threads or the machine.
class Dropout {
 public:
  Dropout() = default;
  Dropout(float probability, std::uint64_t seed, std::uint64_t step, DropoutSite site, std::uint32_t layer);

  bool active() const { return threshold_ > 0; }
  /// The values belong to keys 0 … n-1.
  void apply(float* values, std::size_t n, std::int64_t batch, std::int64_t head, std::int64_t query) const;

 private:
  std::array<std::uint32_t, 2> key_{};
  std::uint32_t threshold_ = 0;  ///< values whose 24-bit random number is below this are dropped
  float factor_ = 1;
};

/// Each row of (..,L,width) counts as a query of head 0.
void drop_rows(const Dropout& dropout, float* values, std::int64_t rows, std::int64_t L, std::int64_t width);

float check_dropout(std::string_view op, float probability);

Dropout dropout_of_call(std::string_view op, const std::optional<float>& probability, const std::optional<std::uint64_t>& seed);

}  // namespace attn::detail
