// An encoder with one layer learns to reverse eight digits: at position i its head must attend to position 7 - i.
#include <algorithm>
#include <attn/attn.hpp>
#include <cstdint>
#include <cstdio>

constexpr std::size_t kLength = 8, kBatch = 64, kNew = 500;
constexpr int kWidth = 32, kSteps = 160;

using Digits = xt::xtensor<int, 2>;  // (B,8)

Digits draw(std::size_t count, std::uint32_t& state) {
  Digits x = xt::empty<int>({count, kLength});
  for (int& digit : x) {
    state = state * 1664525 + 1013904223;
    digit = static_cast<int>(std::uint64_t{state} * 10 >> 32);
  }
  return x;
}

Digits reversed(Digits x) {
  for (std::size_t b = 0; b < x.shape(0); ++b) std::reverse(&x(b, 0), &x(b, 0) + kLength);
  return x;
}

// Returns the digit with the largest logit at each position.
Digits answers(const xt::xtensor<float, 3>& logits) {
  Digits y = xt::empty<int>({logits.shape(0), kLength});
  for (std::size_t i = 0; i < y.size(); ++i) {
    const float* row = logits.data() + 10 * i;
    y.data()[i] = static_cast<int>(std::max_element(row, row + 10) - row);
  }
  return y;
}

int main() {
  attn::Embedding digits({.num_embeddings = 10, .embedding_dim = kWidth});
  attn::Embedding places({.num_embeddings = kLength, .embedding_dim = kWidth});
  attn::TransformerClassifier model(
      {.encoder = {.layer = {.d_model = kWidth, .nhead = 1, .dim_feedforward = 64, .dropout = 0, .activation = attn::Activation::gelu},
                   .num_layers = 1},
       .num_classes = 10});
  places.initialize({.seed = 4});  // with the default seed 0 both matrices would begin with the same rows
  attn::AdamW optimizer({digits, places, model});

  const auto forward = [&](const Digits& x, const attn::EncoderForwardOptions& options) {
    Digits at = xt::empty<int>(x.shape());
    for (std::size_t i = 0; i < at.size(); ++i) at.data()[i] = static_cast<int>(i % kLength);
    const bool for_backward = options.for_backward;
    const xt::xtensor<float, 3> sum = digits.forward(x, {.for_backward = for_backward}) + places.forward(at, {.for_backward = for_backward});
    return model.forward(sum, options);  // logits (B,8,10)
  };

  std::uint32_t state = 1, new_state = 2;
  const Digits unseen = draw(kNew, new_state), wanted = reversed(unseen);
  for (int step = 1; step <= kSteps; ++step) {
    const Digits x = draw(kBatch, state);
    const xt::xtensor<float, 3> logits = forward(x, {.for_backward = true}).logits;
    const auto [loss, gradient] = attn::cross_entropy(logits, reversed(x));
    optimizer.zero_grad();
    const auto grad_x = model.backward(gradient).grad_x;  // gradient of the sum, hence of both terms
    digits.backward(grad_x);
    places.backward(grad_x);
    attn::clip_grad_norm({digits, places, model}, 1);
    optimizer.set_learning_rate(attn::cosine_schedule(step - 1, {.learning_rate = 0.003, .warmup = 20, .steps = kSteps}));
    optimizer.step();
    if (step % 20 != 0) continue;
    const Digits y = answers(forward(unseen, {}).logits);
    int right = 0;
    for (std::size_t b = 0; b < kNew; ++b) right += std::equal(&y(b, 0), &y(b, 0) + kLength, &wanted(b, 0));
    std::printf("step %3d: loss %.2f, of %zu new sequences right: %.1f %%\n", step, loss, kNew, 100.0 * right / kNew);
  }

  const Digits x{{3, 1, 4, 1, 5, 9, 2, 6}};
  const auto r = forward(x, {.output_attentions = true});
  const Digits y = answers(r.logits);
  std::printf("\n   ");
  for (const int digit : x) std::printf(" %d", digit);
  std::printf("   # where more than half of the attention goes\n");
  for (std::size_t i = 0; i < kLength; ++i) {
    std::printf("%d: ", y(0, i));
    for (std::size_t j = 0; j < kLength; ++j) std::printf(" %c", r.attentions->at(0)(0, 0, i, j) > 0.5 ? '#' : '.');
    std::printf("\n");
  }
}
