#include "encoder_forward.hpp"
#include "token_model.hpp"

// ImageModel in web/lib.
namespace attn::bindings {
namespace {

void image_forward(Arguments& arguments, Work<TokenModel> work) {
  const TensorView pixels = arguments.tensor("pixelValues");
  detail::ModelForwardOptions options;
  arguments.group("options", [&] {
    common_options(arguments, options);
    bool logits = true;
    if (arguments.option("outputLogits", logits)) options.logits = logits;
  });
  work([&](TokenModel& self, Result& result) {
    const EncoderModel& model = self.model();
    const detail::ModelInputs inputs = model.image_inputs("ImageModel", pixels);
    run(model, inputs, model.plan("ImageModel", inputs, options), result);
  });
}

void image_embed(Arguments& arguments, Work<TokenModel> work) {
  const TensorView pixels = arguments.tensor("pixelValues");
  ImagePooling pooling = ImagePooling::cls;
  bool normalize = false;
  arguments.group("options", [&] {
    arguments.option("pooling", pooling, detail::kImagePoolingNames);
    arguments.option("normalize", normalize);
  });
  work([&](TokenModel& self, Result& result) {
    const detail::ModelInputs inputs = self.model().image_inputs("embed", pixels);
    self.model().embed_images(inputs, pooling, normalize, result.add(self.model().check_image_embed("embed", inputs, pooling)));
  });
}

void image_classify(Arguments& arguments, Work<TokenModel> work) {
  const TensorView pixels = arguments.tensor("pixelValues");
  work([&](TokenModel& self, Result& result) {
    const detail::ModelInputs inputs = self.model().image_inputs("classify", pixels);
    self.model().classify(inputs, result.add(self.model().check_classify("classify", inputs)));
  });
}

}  // namespace

void define_images(TokenModelClass& model) {
  model.method<image_forward>("imageForward", "text_model")
      .method<image_embed>("imageEmbed", "tensor")
      .method<image_classify>("imageClassify", "tensor");
}

}  // namespace attn::bindings
