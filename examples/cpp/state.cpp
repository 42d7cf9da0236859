// Writes randomly initialised weights to a safetensors file and reads them back bit for bit.
#include <attn/attn.hpp>
#include <cstdio>
#include <cstring>

int main() {
  const attn::TransformerEncoderOptions options{.layer = {.d_model = 8, .nhead = 2, .dim_feedforward = 16}, .num_layers = 2};
  attn::TransformerEncoder encoder(options), other(options);
  encoder.initialize({.scheme = attn::InitScheme::xavier_uniform, .seed = 42});
  std::printf("%d parameters in %zu tensors\n", static_cast<int>(encoder.parameter_count()), encoder.parameter_shapes().size());
  for (const auto& [name, shape] : encoder.parameter_shapes())
    if (name.starts_with("layers.0.self_attn")) std::printf("%s %s\n", name.c_str(), attn::to_string(shape).c_str());

  const attn::StateDict state = encoder.state_dict();
  std::printf("layers.0.linear1.weight begins with %.4f\n", state.at("layers.0.linear1.weight")(0, 0));
  const std::vector<std::uint8_t> file = attn::write_safetensors(state, {{"made_by", "an example"}});
  std::printf("%zu bytes\n", file.size());
  other.load_state_dict(attn::parse_safetensors(file));

  const auto x = attn::Embedding({.num_embeddings = 50, .embedding_dim = 8}).forward(xt::xtensor<int, 1>{12, 7, 41, 3});
  std::printf("the same output: %s\n", encoder.forward(x).output == other.forward(x).output ? "yes" : "no");

  // A state that does not match is refused as a whole, and the error lists every mismatch.
  attn::StateDict wrong = state;
  wrong.erase("layers.0.norm1.bias");
  wrong["layers.1.norm2.weight"] = xt::ones<float>({9});
  try {
    other.load_state_dict(wrong);
  } catch (const attn::Error& error) {
    std::printf("%s%s\n", attn::to_string(error.code()).data(), std::strchr(error.what(), ':'));  // without the function's name
  }
}
