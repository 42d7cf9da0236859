#include "attn/models/attribution.hpp"
#include "attn/models/model_gradient.hpp"
#include "encoder_forward.hpp"
#include "token_model.hpp"

namespace attn::bindings {
namespace {

/// Gradients of one number with respect to embeddings, attentions and traces by layer, and parameters; also the number.
void gradients(Arguments& arguments, Work<TokenModel> work) {
  Batch batch(arguments);
  detail::ModelGradientTarget target;
  arguments.require_group("target", [&] {
    arguments.option("label", target.label);
    arguments.option("component", target.component);
    arguments.option("token", target.token);
    arguments.option("row", target.row);
    arguments.option("contrast", target.contrast);
  });
  bool embeddings = false, attentions = false, parameters = false;
  arguments.require_group("wrt", [&] {
    arguments.option("embeddings", embeddings);
    arguments.option("attentions", attentions);
    arguments.option("parameters", parameters);
  });
  std::optional<EncoderTraceOptions> trace = trace_option(arguments);
  work([&](TokenModel& self, Result& result) {
    const detail::ModelGradient gradient("gradients", self.model(), batch.inputs(), target, embeddings, attentions, parameters, trace);
    result.set_number(static_cast<double>(gradient.value()));
    float* const of_embeddings = embeddings ? result.add(gradient.embeddings()) : nullptr;
    std::vector<float*> of_attentions;
    if (attentions)
      for (std::size_t layer = 0; layer < gradient.layers(); ++layer)
        of_attentions.push_back(result.add(Field::attentions, gradient.attentions(), static_cast<std::int32_t>(layer)));
    StateTarget of_parameters;
    if (parameters)
      for (const auto& [name, shape] : self.parameter_shapes()) of_parameters.emplace(name, result.add(name, shape));
    std::vector<detail::TraceBuffers> of_traces;
    if (trace) {
      of_traces.resize(gradient.layers());
      add_traces(gradient.traced(), result, [&](std::size_t layer, std::size_t name) -> float*& { return of_traces[layer][name]; });
    }
    gradient.run(of_embeddings, of_attentions, parameters ? &of_parameters : nullptr, std::move(of_traces));
  });
}

/// One portion: scores of tokens, f of the text and the baseline, the target, the number of portions.
void attribute(Arguments& arguments, Work<TokenModel> work) {
  const std::vector<std::int64_t> ids = arguments.labels("inputIds"), types = arguments.labels("tokenTypeIds"), special = arguments.labels("special");
  detail::AttributionCall call;
  arguments.require("padId", call.pad_id);
  arguments.require("method", call.method, kAttributionMethodNames);
  arguments.option("target", call.target);
  arguments.option("contrast", call.contrast);
  arguments.option("position", call.position);
  arguments.require("steps", call.steps);
  std::int64_t portion = 0;
  arguments.require("portion", portion);
  work([&](TokenModel& self, Result& result) {
    const std::vector<std::uint8_t> flags(special.begin(), special.end());
    detail::AttributionCall given = call;
    given.ids = ids;
    given.types = types;
    given.special = flags;
    const detail::Attribution attribution("attribute", self.model(), given);
    result.set_number(static_cast<double>(attribution.portions()));
    float* const scores = result.add("scores", Shape{static_cast<std::int64_t>(ids.size())});
    float* const values = result.add("values", Shape{3});
    attribution.run(portion, scores, values);
    values[2] = static_cast<float>(attribution.target());
  });
}

}  // namespace

void define_gradients(TokenModelClass& model) { model.method<gradients>("gradients", "raw").method<attribute>("attribute", "raw"); }

}  // namespace attn::bindings
