// Configures xtensor unlike the library: aligned containers, xsimd.
#include <attn/attn.hpp>
#if __has_include(<xtensor/views/xview.hpp>)
#include <xtensor/views/xview.hpp>
#else
#include <xtensor/xview.hpp>
#endif

#include <cmath>
#include <cstdio>

#ifndef XTENSOR_USE_XSIMD
#error "this program is about XTENSOR_USE_XSIMD"
#endif

namespace {

int failures = 0;

void check(bool right, const char* what) {
  if (right) return;
  std::printf("%s is wrong\n", what);
  ++failures;
}

}  // namespace

int main() {
  attn::Tensor<3> x = xt::zeros<float>({2, 5, 8});
  for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] = std::sin(static_cast<float>(i));
  const xt::xtensor<float, 3, xt::layout_type::column_major> columns = x;

  attn::MultiHeadAttention layer({.embed_dim = 8, .num_heads = 2});
  const auto output = layer.forward(x, {.key_padding_mask = attn::Mask::attend(xt::ones<bool>({2, 5})), .trace = attn::Trace::all()});
  check(layer.forward(columns).output == output.output, "a column-major input");
  check(layer.forward(xt::view(x, 1)).output == attn::Tensor<2>(xt::view(output.output, 1)), "a view");
  layer.load_state_dict(layer.state_dict());
  check(layer.forward(x).output == output.output, "a state loaded again");
  check(output.trace->at(attn::TraceName::weights).size() == 2 * 2 * 5 * 5, "a trace");

  const attn::Embedding table({.num_embeddings = 9, .embedding_dim = 4});
  const attn::Tensor<2> rows = table.forward(xt::xtensor<int, 1>{3, 4});
  check(table.nearest(attn::Tensor<1>(xt::view(rows, 0)), 1).front().id == 3, "nearest");
  check(attn::sinusoidal_positions(3, 4)(0, 1) == 1.0F, "sinusoidal_positions");
  check(attn::parse_safetensors(attn::write_safetensors(layer.state_dict())) == layer.state_dict(), "a state written and read");
  std::printf(failures == 0 ? "all right\n" : "%d wrong\n", failures);
  return failures;
}
