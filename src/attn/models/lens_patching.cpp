#include <algorithm>
#include <utility>

#include "attn/models/lens.hpp"
#include "attn/models/lens_model.hpp"
#include "attn/models/model_gradient.hpp"
#include "attn/tensor/float_environment.hpp"

namespace attn::lens {
namespace {

using detail::fail;
using detail::LensModel;
using detail::LensRun;
using detail::LensTokens;
using detail::row_of;

/// The results do not depend on it.
constexpr std::size_t kVariantsAtOnce = 8;

struct Pair {
  LensModel lens;
  PatchSite site;
  std::int64_t answer = 0;
  std::optional<std::int64_t> contrast = std::nullopt;
  std::size_t position = 0;
  std::vector<std::int64_t> positions = {};
  LensTokens clean = {}, corrupted = {};
  LensRun of_clean = {}, of_corrupted = {};
  double clean_value = 0, corrupted_value = 0;

  Pair(std::string_view op, const TextModel& model, const Text& clean_text, const Text& corrupted_text, const PatchOptions& options);

  bool by_heads() const { return site == PatchSite::head; }
  std::size_t columns() const { return by_heads() ? lens.heads() : positions.size(); }
  double span() const { return clean_value - corrupted_value; }

  /// Throws ARGUMENT if the answer's values are equal.
  void run(Trace names);
  /// Of the answer minus the contrast, for normed hidden states (count,E).
  std::vector<double> values_of(std::span<const float> normed) const;
  PatchResult result(LayerTable recovered);

 private:
  LensRun run(const LensTokens& text, Trace names) const;
  double value_of(const LensRun& run) const { return values_of(row_of(run.output, position, lens.width()))[0]; }
};

Pair::Pair(std::string_view op, const TextModel& model, const Text& clean_text, const Text& corrupted_text, const PatchOptions& options)
    : lens(op, model), site(options.site) {
  lens.check_decoder();
  clean = lens.tokens(clean_text, "clean");
  corrupted = lens.tokens(corrupted_text, "corrupted");
  const std::int64_t L = std::ssize(clean.ids);
  if (std::ssize(corrupted.ids) != L)
    fail(ErrorCode::argument, op, "corrupted", {"a text of ", L, " tokens, as clean"}, {corrupted.ids.size(), " tokens long"},
         "Patching compares positions");
  if (by_heads() && options.positions)
    fail(ErrorCode::argument, op, "positions", {"no positions with the site head"}, {"given"}, "A head is replaced at all positions");
  answer = lens.token("answer", options.answer);
  contrast = lens.token("contrast", options.contrast);
  position = static_cast<std::size_t>(lens.index("position", options.position, L));
  positions = lens.indices("positions", options.positions, L);
}

LensRun Pair::run(const LensTokens& text, Trace names) const {
  if (!names.any()) return lens.run(text.ids, 1, {.output_hidden_states = true});
  return lens.run(text.ids, 1, {.output_hidden_states = true, .trace = EncoderTraceOptions{.names = names}});
}

void Pair::run(Trace names) {
  of_clean = run(clean, names);
  of_corrupted = run(corrupted, names);
  clean_value = value_of(of_clean);
  corrupted_value = value_of(of_corrupted);
  if (clean_value == corrupted_value)
    fail(ErrorCode::argument, lens.op(), "answer", {"a token whose logit differs between the texts"},
         {"one with the value ", clean_value, " in both"});
}

std::vector<double> Pair::values_of(std::span<const float> normed) const {
  std::vector<double> values;
  lens.each_row_of_logits(normed, [&](std::span<const float> logits, std::size_t) {
    const auto logit = [&](std::int64_t id) { return static_cast<double>(logits[static_cast<std::size_t>(id)]); };
    values.push_back(logit(answer) - (contrast ? logit(*contrast) : 0));
  });
  return values;
}

PatchResult Pair::result(LayerTable recovered) {
  return {.clean_tokens = std::move(clean.tokens),
          .corrupted_tokens = std::move(corrupted.tokens),
          .positions = by_heads() ? std::vector<std::int64_t>() : std::move(positions),
          .clean = clean_value,
          .corrupted = corrupted_value,
          .recovered = std::move(recovered)};
}

/// (L,width) in both runs.
struct Activation {
  std::vector<float> clean, corrupted;
  bool is_merged = false;
  std::size_t layer = 0;  ///< the number of layers: the final norm
};

std::vector<float> sum(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> all(a.size());
  std::transform(a.begin(), a.end(), b.begin(), all.begin(), std::plus<>());
  return all;
}

Activation activation_of(const Pair& pair, std::size_t layer) {
  const LensRun &clean = pair.of_clean, &corrupted = pair.of_corrupted;
  if (pair.site == PatchSite::residual) return {clean.hidden_states[layer], corrupted.hidden_states[layer], false, layer};
  if (pair.site != PatchSite::mlp) return {clean.trace(layer, TraceName::merged), corrupted.trace(layer, TraceName::merged), true, layer};
  // The next layer's input is the corrupted residual, which does not change, plus the MLP's clean output.
  const std::vector<float>& residual = corrupted.trace(layer, TraceName::attn_residual);
  return {sum(residual, clean.trace(layer, TraceName::ff_output)), sum(residual, corrupted.trace(layer, TraceName::ff_output)), false, layer + 1};
}

void copy_cell(const Pair& pair, std::size_t column, std::span<const float> from, std::span<float> to) {
  const std::size_t L = pair.clean.ids.size(), W = from.size() / L, H = pair.lens.heads(), D = W / H;
  if (!pair.by_heads()) {
    const std::size_t first = static_cast<std::size_t>(pair.positions[column]) * W;
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(first), W, to.begin() + static_cast<std::ptrdiff_t>(first));
    return;
  }
  for (std::size_t i = 0; i < L; ++i) {
    const auto first = static_cast<std::ptrdiff_t>(i * W + column * D);
    std::copy_n(from.begin() + first, D, to.begin() + first);
  }
}

/// Values of the corrupted text with a cell patched, by column.
std::vector<double> patched_values(const Pair& pair, const Activation& activation, std::span<const std::size_t> columns) {
  const std::size_t size = activation.corrupted.size(), L = pair.clean.ids.size(), E = pair.lens.width();
  const auto count = static_cast<std::int64_t>(columns.size());
  std::vector<float> patched;
  std::vector<std::int64_t> ids;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    patched.insert(patched.end(), activation.corrupted.begin(), activation.corrupted.end());
    ids.insert(ids.end(), pair.corrupted.ids.begin(), pair.corrupted.ids.end());
    copy_cell(pair, columns[i], activation.clean, std::span(patched).subspan(i * size, size));
  }
  const bool is_last = activation.layer == pair.lens.layers();
  if (!is_last) {
    const TensorView view(patched.data(), {count, static_cast<std::int64_t>(L), static_cast<std::int64_t>(size / L)});
    detail::ModelPatch patch{.layer = static_cast<std::int64_t>(activation.layer)};
    (activation.is_merged ? patch.merged : patch.hidden_state) = view;
    detail::ModelForwardOptions options;
    options.patches = {patch};
    patched = pair.lens.run(ids, count, options).output;
  }
  std::vector<float> rows;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::span<const float> row = row_of(patched, i * L + pair.position, E);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  if (is_last) pair.lens.final_norm(rows);
  return pair.values_of(rows);
}

Trace traces_of(PatchSite site) {
  if (site == PatchSite::residual) return {};
  if (site == PatchSite::mlp) return {TraceName::ff_output, TraceName::attn_residual};
  return {TraceName::merged};
}

/// Change times gradient approximates a patch. A layer's input is the output of the layer before.
TraceName gradient_of(PatchSite site) {
  if (site == PatchSite::residual) return TraceName::ff_residual;
  if (site == PatchSite::head) return TraceName::merged;
  return site == PatchSite::attention ? TraceName::output : TraceName::ff_output;
}

/// By layer (L,width).
std::vector<std::vector<float>> gradients_of(const Pair& pair) {
  const TraceName name = gradient_of(pair.site);
  const bool is_residual = pair.site == PatchSite::residual;
  const detail::ModelInputs inputs{.shape = {1, std::ssize(pair.corrupted.ids)}, .input_ids = pair.corrupted.ids};
  const detail::ModelGradientTarget target{.label = pair.answer, .token = static_cast<std::int64_t>(pair.position), .contrast = pair.contrast};
  const detail::ModelGradient gradient(pair.lens.op(), pair.lens.model(), inputs, target, is_residual, false, false,
                                       EncoderTraceOptions{.names = {name}});
  const Shape& shape = gradient.traced().trace_shapes[static_cast<std::size_t>(name)];
  const auto size = static_cast<std::size_t>(checked_size(shape, pair.lens.op(), "a gradient"));
  std::vector<float> embeddings(is_residual ? size : 0);
  std::vector<std::vector<float>> layers(pair.lens.layers(), std::vector<float>(size));
  std::vector<detail::TraceBuffers> buffers(layers.size());
  for (std::size_t layer = 0; layer < layers.size(); ++layer) buffers[layer][static_cast<std::size_t>(name)] = layers[layer].data();
  gradient.run(is_residual ? embeddings.data() : nullptr, {}, nullptr, std::move(buffers));
  if (!is_residual) return layers;
  layers.insert(layers.begin(), std::move(embeddings));  // the first layer's input
  layers.pop_back();
  return layers;
}

}  // namespace

PatchResult patch_activations(const TextModel& model, const Text& clean, const Text& corrupted, const PatchOptions& options) {
  Pair pair("patch_activations", model, clean, corrupted, options);
  pair.run(traces_of(pair.site));
  // Later positions have no effect on the answer.
  std::vector<std::size_t> seen;
  for (std::size_t i = 0; i < pair.columns(); ++i)
    if (pair.by_heads() || static_cast<std::size_t>(pair.positions[i]) <= pair.position) seen.push_back(i);
  LayerTable recovered(pair.lens.layers(), std::vector<float>(pair.columns()));
  std::size_t done = 0;
  for (std::size_t layer = 0; layer < recovered.size(); ++layer) {
    const Activation activation = activation_of(pair, layer);
    for (std::size_t first = 0; first < seen.size(); first += kVariantsAtOnce) {
      const std::span<const std::size_t> some = std::span(seen).subspan(first, std::min(kVariantsAtOnce, seen.size() - first));
      const std::vector<double> values = patched_values(pair, activation, some);
      for (std::size_t i = 0; i < some.size(); ++i)
        recovered[layer][some[i]] = static_cast<float>((values[i] - pair.corrupted_value) / pair.span() + 0.0);
      done += some.size();
      if (options.on_progress) options.on_progress(static_cast<std::int64_t>(done), static_cast<std::int64_t>(recovered.size() * seen.size()));
    }
  }
  return pair.result(std::move(recovered));
}

PatchResult attribution_patching(const TextModel& model, const Text& clean, const Text& corrupted, const PatchOptions& options) {
  const detail::FloatEnvironment environment;
  Pair pair("attribution_patching", model, clean, corrupted, options);
  const bool is_residual = pair.site == PatchSite::residual;
  const TraceName name = gradient_of(pair.site);
  pair.lens.model().check_gradients(pair.lens.op());
  pair.run(is_residual ? Trace() : Trace{name});
  const std::vector<std::vector<float>> gradients = gradients_of(pair);
  const std::size_t L = pair.clean.ids.size();
  LayerTable recovered(gradients.size(), std::vector<float>(pair.columns()));
  for (std::size_t layer = 0; layer < recovered.size(); ++layer) {
    const auto values = [&](const LensRun& run) -> const std::vector<float>& {
      return is_residual ? run.hidden_states[layer] : run.trace(layer, name);
    };
    const std::vector<float>&before = values(pair.of_corrupted), &after = values(pair.of_clean), &slope = gradients[layer];
    const std::size_t W = slope.size() / L, D = W / pair.lens.heads();
    const auto products = [&](std::size_t first, std::size_t count) {
      double total = 0;
      for (std::size_t k = first; k < first + count; ++k)
        total += static_cast<double>(
            static_cast<float>(static_cast<double>(slope[k]) * (static_cast<double>(after[k]) - static_cast<double>(before[k])) / pair.span()));
      return total;
    };
    for (std::size_t i = 0; i < pair.columns(); ++i) {
      double total = 0;
      if (!pair.by_heads()) total = products(static_cast<std::size_t>(pair.positions[i]) * W, W);
      for (std::size_t row = 0; row < L && pair.by_heads(); ++row) total += products(row * W + i * D, D);
      recovered[layer][i] = static_cast<float>(total);
    }
  }
  return pair.result(std::move(recovered));
}

}  // namespace attn::lens
