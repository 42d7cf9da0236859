#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

// Dropout whose random numbers belong to places, not to an order. Internal: ops and layers share it.
namespace attn::detail {

/// Where a dropout sits; the last four are a checkpoint's. The numbers are part of the key.
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

/// By place.
struct DropoutProbabilities {
  float attention_weights = 0, attention_output = 0;
  float hidden = 0;               ///< of the feed-forward, after the activation
  float feed_forward_output = 0;  ///< before it is added to what came in
  float embeddings = 0;           ///< after their norm
  float pooled = 0;               ///< what the head takes
  float classifier = 0;           ///< what the head's last map takes
  float relative_positions = 0;   ///< the embeddings of relative positions, in each layer

  float at(DropoutSite site) const {
    const float all[] = {attention_weights, attention_output, hidden, feed_forward_output, embeddings, pooled, classifier, relative_positions};
    return all[static_cast<std::size_t>(site)];
  }
};

/// Inverted dropout (Srivastava et al. 2014; torch.nn.functional.dropout): each value becomes 0 with the probability given,
/// the others are divided by 1 - probability. Whether one is kept follows from (seed, step, site, layer, batch, head, query, key) by
/// Philox-4x32-10, so it depends neither on threads nor on the machine.
class Dropout {
 public:
  /// Keeps everything.
  Dropout() = default;
  Dropout(float probability, std::uint64_t seed, std::uint64_t step, DropoutSite site, std::uint32_t layer);

  bool active() const { return threshold_ > 0; }
  /// On the values of keys 0 .. n-1.
  void apply(float* values, std::size_t n, std::int64_t batch, std::int64_t head, std::int64_t query) const;

 private:
  std::array<std::uint32_t, 2> key_{};
  std::uint32_t threshold_ = 0;  ///< a random number of 24 bits below this drops
  float factor_ = 1;
};

/// The same for rows (..,L,width), each as a query of its own without heads; or for their gradients.
void drop_rows(const Dropout& dropout, float* values, std::int64_t rows, std::int64_t L, std::int64_t width);

/// Throws CONFIG outside [0,1).
float check_dropout(std::string_view op, float probability);

/// Dropout on the weights of one call of a function: step 0, layer 0.
Dropout dropout_of_call(std::string_view op, const std::optional<float>& probability, const std::optional<std::uint64_t>& seed);

}  // namespace attn::detail
