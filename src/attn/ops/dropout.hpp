#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

// Dropout whose random numbers depend on positions, not on the order of evaluation. Internal: shared by ops and layers.
namespace attn::detail {

/// Location of a dropout in a model; only a checkpoint's probabilities activate the last four. The values are part of the random key.
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

/// Dropout probability of each site.
struct DropoutProbabilities {
  float attention_weights = 0, attention_output = 0;
  float hidden = 0;               ///< in the feed-forward network, after the activation
  float feed_forward_output = 0;  ///< before the residual addition
  float embeddings = 0;           ///< after the norm of the embeddings
  float pooled = 0;               ///< input of the head
  float classifier = 0;           ///< input of the head's last linear layer
  float relative_positions = 0;   ///< embeddings of relative positions, in each layer

  float at(DropoutSite site) const {
    const float all[] = {attention_weights, attention_output, hidden, feed_forward_output, embeddings, pooled, classifier, relative_positions};
    return all[static_cast<std::size_t>(site)];
  }
};

/// Inverted dropout (Srivastava et al. 2014; torch.nn.functional.dropout): sets each value to 0 with the given probability and divides the
/// others by 1 - probability. Philox-4x32-10 of (seed, step, site, layer, batch, head, query, key) decides which values are kept, so the result
/// depends neither on threads nor on the machine.
class Dropout {
 public:
  /// Keeps all values.
  Dropout() = default;
  Dropout(float probability, std::uint64_t seed, std::uint64_t step, DropoutSite site, std::uint32_t layer);

  bool active() const { return threshold_ > 0; }
  /// Applies dropout to the values of keys 0 … n-1.
  void apply(float* values, std::size_t n, std::int64_t batch, std::int64_t head, std::int64_t query) const;

 private:
  std::array<std::uint32_t, 2> key_{};
  std::uint32_t threshold_ = 0;  ///< values whose 24-bit random number is below this are dropped
  float factor_ = 1;
};

/// Applies dropout to rows (..,L,width) or to their gradients; each row counts as a query, and head is 0.
void drop_rows(const Dropout& dropout, float* values, std::int64_t rows, std::int64_t L, std::int64_t width);

/// Throws CONFIG if the probability is outside [0,1).
float check_dropout(std::string_view op, float probability);

/// Returns the dropout on the weights of one call of an attention function: step 0, layer 0.
Dropout dropout_of_call(std::string_view op, const std::optional<float>& probability, const std::optional<std::uint64_t>& seed);

}  // namespace attn::detail
