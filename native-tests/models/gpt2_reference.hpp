#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "attn/models/lens.hpp"
#include "attn/models/text_model.hpp"

namespace attn::test {

using Matrix = std::vector<std::vector<double>>;

/// GPT-2 in float64, as wasm-tests/support/gpt2_reference.ts.
class Gpt2Reference {
 public:
  enum class Site { resid_pre, z, attn_out, mlp_out };
  /// May change the L rows.
  using Hook = std::function<void(std::size_t layer, Site site, Matrix& values)>;

  Gpt2Reference(const TextModel& model, std::size_t layers, std::size_t heads) : layers_(layers), heads_(heads), state_(model.state_dict()) {}

  std::vector<double> values(const std::string& name) const {
    const auto found = state_.find("transformer." + name);
    const AnyTensor& tensor = found != state_.end() ? found->second : state_.at(name);
    return {tensor.begin(), tensor.end()};
  }

  /// Logits (L,V).
  Matrix run(const std::vector<std::int64_t>& ids, const Hook& hook) const {
    const std::vector<double> words = values("wte.weight"), places = values("wpe.weight"), gain = values("ln_f.weight");
    const std::size_t E = gain.size();
    Matrix x(ids.size(), std::vector<double>(E));
    for (std::size_t i = 0; i < x.size(); ++i)
      for (std::size_t e = 0; e < E; ++e) x[i][e] = words[static_cast<std::size_t>(ids[i]) * E + e] + places[i * E + e];
    for (std::size_t layer = 0; layer < layers_; ++layer) {
      const std::string name = "h." + std::to_string(layer);
      hook(layer, Site::resid_pre, x);
      add(x, attention(norm(x, name + ".ln_1"), layer, name + ".attn.", hook));
      Matrix hidden = linear(norm(x, name + ".ln_2"), name + ".mlp.c_fc");
      for (std::vector<double>& row : hidden)
        for (double& value : row) value *= 0.5 * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (value + 0.044715 * value * value * value)));
      Matrix out = linear(hidden, name + ".mlp.c_proj");
      hook(layer, Site::mlp_out, out);
      add(x, out);
    }
    Matrix logits = norm(x, "ln_f");
    for (std::vector<double>& row : logits) {
      std::vector<double> all(words.size() / E);
      for (std::size_t id = 0; id < all.size(); ++id)
        for (std::size_t e = 0; e < E; ++e) all[id] += row[e] * words[id * E + e];
      row = all;
    }
    return logits;
  }

  std::vector<Matrix> activations(const std::vector<std::int64_t>& ids, Site wanted) const {
    std::vector<Matrix> all(layers_);
    run(ids, [&](std::size_t layer, Site site, const Matrix& x) {
      if (site == wanted) all[layer] = x;
    });
    return all;
  }

 private:
  static void add(Matrix& x, const Matrix& y) {
    for (std::size_t i = 0; i < x.size(); ++i)
      for (std::size_t e = 0; e < x[i].size(); ++e) x[i][e] += y[i][e];
  }
  Matrix norm(Matrix x, const std::string& name) const {
    const std::vector<double> gain = values(name + ".weight"), shift = values(name + ".bias");
    for (std::vector<double>& row : x) {
      double mean = 0, variance = 0;
      const auto E = static_cast<double>(row.size());
      for (const double value : row) mean += value / E;
      for (const double value : row) variance += (value - mean) * (value - mean) / E;
      for (std::size_t e = 0; e < row.size(); ++e) row[e] = (row[e] - mean) / std::sqrt(variance + 1e-5) * gain[e] + shift[e];
    }
    return x;
  }
  Matrix linear(const Matrix& x, const std::string& name) const {
    const std::vector<double> weight = values(name + ".weight"), bias = values(name + ".bias");
    Matrix y(x.size(), bias);
    for (std::size_t i = 0; i < x.size(); ++i)
      for (std::size_t k = 0; k < x[i].size(); ++k)
        for (std::size_t o = 0; o < bias.size(); ++o) y[i][o] += x[i][k] * weight[k * bias.size() + o];
    return y;
  }
  Matrix attention(const Matrix& x, std::size_t layer, const std::string& name, const Hook& hook) const {
    const Matrix qkv = linear(x, name + "c_attn");
    const std::size_t E = x[0].size(), D = E / heads_;
    Matrix z(x.size(), std::vector<double>(E));
    for (std::size_t head = 0; head < heads_; ++head)
      for (std::size_t i = 0; i < x.size(); ++i) {
        std::vector<double> powers(i + 1);
        double sum = 0;
        for (std::size_t j = 0; j <= i; ++j) {
          double score = 0;
          for (std::size_t d = head * D; d < (head + 1) * D; ++d) score += qkv[i][d] * qkv[j][E + d];
          sum += powers[j] = std::exp(score / std::sqrt(static_cast<double>(D)));
        }
        for (std::size_t j = 0; j <= i; ++j)
          for (std::size_t d = head * D; d < (head + 1) * D; ++d) z[i][d] += powers[j] / sum * qkv[j][2 * E + d];
      }
    hook(layer, Site::z, z);
    Matrix out = linear(z, name + "c_proj");
    hook(layer, Site::attn_out, out);
    return out;
  }

  std::size_t layers_, heads_;
  StateDict state_;
};

}  // namespace attn::test
