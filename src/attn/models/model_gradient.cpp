#include "attn/models/model_gradient.hpp"

#include <algorithm>
#include <utility>

#include "attn/kernels/kernels.hpp"
#include "attn/layers/gradients.hpp"
#include "attn/models/encoder_model.hpp"
#include "attn/models/kept_model.hpp"

namespace attn::detail {

struct ModelGradient::Parts {
  EncoderModel& model;
  Shape embeddings, attentions;
  bool of_head;
  std::size_t target;  ///< in all results
  std::optional<std::size_t> contrast;
  EncoderPlan traced;
  std::unique_ptr<KeptModel> kept = nullptr;
};

ModelGradient::ModelGradient(std::string_view op, EncoderModel& model, const ModelInputs& inputs, const ModelGradientTarget& target, bool embeddings,
                             bool attentions, bool parameters, const std::optional<EncoderTraceOptions>& trace) {
  model.check_gradients(op);
  if (target.label.has_value() == target.component.has_value())
    fail(ErrorCode::argument, op, "target", {"a label or a component"}, {target.label ? "both" : "neither"});
  if (!embeddings && !attentions && !parameters && !trace)
    fail(ErrorCode::argument, op, "the list of gradients", {"embeddings, attentions, parameters or a trace"}, {"empty"});
  const bool of_head = target.label.has_value(), of_token = of_head && model.has_head() && model.config().of_tokens();
  if (of_head && !model.has_head()) fail(ErrorCode::unsupported, op, "target.label", {"a checkpoint with a head"}, {"given without a head"});
  if (of_token && !target.token) fail(ErrorCode::argument, op, "target.token", {"a token"}, {"missing"}, "The head has logits for each token");
  if (!of_token && target.token)
    fail(ErrorCode::unsupported, op, "target.token", {"no token"}, {*target.token}, "The head has logits for the whole text");
  std::vector<std::int64_t> tokens(of_token ? 1 : 0);
  ModelForwardOptions options{.for_backward = true, .keep = {.of_head = of_head, .tokens = tokens}, .logits = !of_token};
  const ModelPlan plan = model.plan(op, inputs, options);
  const EncoderPlan& encoder = plan.encoder;
  const std::int64_t width = model.result_size(of_head), number = of_head ? *target.label : *target.component;
  if (number < 0 || number >= width)
    fail(ErrorCode::out_of_range, op, of_head ? "target.label" : "target.component", {"a number from 0 to ", width - 1}, {number});
  if (target.contrast && !of_head) fail(ErrorCode::argument, op, "target.contrast", {"no contrast without a label"}, {*target.contrast});
  if (target.contrast && (*target.contrast < 0 || *target.contrast >= width))
    fail(ErrorCode::out_of_range, op, "target.contrast", {"a number from 0 to ", width - 1}, {*target.contrast});
  if (target.row < 0 || target.row >= encoder.B) fail(ErrorCode::out_of_range, op, "target.row", {"a row from 0 to ", encoder.B - 1}, {target.row});
  if (of_token) {
    if (*target.token < 0 || *target.token >= encoder.L)
      fail(ErrorCode::out_of_range, op, "target.token", {"a token from 0 to ", encoder.L - 1}, {*target.token});
    tokens.front() = target.row * encoder.L + *target.token;
  }
  // Gradients of attention weights take as much memory as the weights.
  options.output_attentions = attentions;
  if (attentions) model.plan(op, inputs, options);
  options.output_attentions = false;
  options.trace = trace;
  EncoderPlan traced = model.plan(op, inputs, options).encoder;
  traced.names = Trace::from_bits(traced.names.bits() & ((1U << kLayerTraceCount) - 1));  // DeBERTa's terms have no gradients
  const std::int64_t first = of_token ? 0 : target.row * width;
  parts_.reset(new Parts{model,
                         {encoder.output[0], encoder.output[1], model.config().word_width()},
                         {encoder.B, encoder.attention.spec.num_heads, encoder.L, encoder.L},
                         of_head,
                         static_cast<std::size_t>(first + number),
                         target.contrast ? std::optional(static_cast<std::size_t>(first + *target.contrast)) : std::nullopt,
                         std::move(traced)});
  std::vector<float> hidden(static_cast<std::size_t>(encoder.B * encoder.L * encoder.E));
  parts_->kept = model.run_and_keep(plan, inputs, {hidden.data(), {}, {}}, options.keep);
}

ModelGradient::~ModelGradient() = default;
float ModelGradient::value() const {
  const float* const result = parts_->kept->result;
  return result[parts_->target] - (parts_->contrast ? result[*parts_->contrast] : 0.0F);
}
const Shape& ModelGradient::embeddings() const { return parts_->embeddings; }
const Shape& ModelGradient::attentions() const { return parts_->attentions; }
std::size_t ModelGradient::layers() const { return static_cast<std::size_t>(parts_->model.config().num_hidden_layers); }
const EncoderPlan& ModelGradient::traced() const { return parts_->traced; }

void ModelGradient::run(float* embeddings, const std::vector<float*>& attentions, const StateTarget* parameters,
                        std::vector<TraceBuffers> traces) const {
  EncoderModel& model = parts_->model;
  std::vector<float> grad(static_cast<std::size_t>(parts_->kept->results * model.result_size(parts_->of_head)));
  grad[parts_->target] = 1;
  if (parts_->contrast) grad[*parts_->contrast] -= 1;
  if (!attentions.empty()) traces.resize(attentions.size());
  std::vector<float*> weights;
  for (std::size_t layer = 0; layer < attentions.size(); ++layer)
    weights.push_back(std::exchange(traces[layer][static_cast<std::size_t>(TraceName::weights)], attentions[layer]));
  Gradients gradients;
  if (parameters != nullptr) gradients.reserve(model.state_shapes());
  model.backward(*parts_->kept, grad.data(), {embeddings, std::move(traces), parameters != nullptr ? &gradients : nullptr});
  const Shape& shape = parts_->attentions;
  for (std::size_t layer = 0; layer < weights.size(); ++layer)
    if (weights[layer] != nullptr) std::copy_n(attentions[layer], shape[0] * shape[1] * shape[2] * shape[3], weights[layer]);
  if (parameters == nullptr) return;
  for (const auto& [name, tensor] : model.tensors()) {
    const auto found = parameters->find(name);
    if (found == parameters->end()) continue;
    std::vector<float> weight(tensor.is_transposed ? tensor.size() : 0);
    float* const to = tensor.is_transposed ? weight.data() : found->second.values;
    for (std::size_t i = 0; i < tensor.pieces.size(); ++i) {
      const ParameterRef& piece = tensor.pieces[i];
      const float* const from = gradients.find(piece.name);
      const auto rows = static_cast<std::size_t>(piece.shape[0]), width = piece.size() / rows;
      for (std::size_t row = 0; row < rows; ++row) {
        float* const place = to + tensor.row_of(i, row) * width;
        from != nullptr ? std::copy_n(from + piece.first + row * width, width, place) : std::fill_n(place, width, 0.0F);
      }
    }
    if (!tensor.is_transposed) continue;
    const auto in = static_cast<std::size_t>(tensor.shape()[0]), out = weight.size() / in;
    kernels::transpose(weight.data(), static_cast<std::ptrdiff_t>(in), out, in, found->second.values, out);
  }
}

}  // namespace attn::detail
