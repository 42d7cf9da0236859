#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace attn {

/// Distributions of torch.nn.init.
enum class InitScheme : std::uint8_t {
  torch,            ///< what torch's own constructor draws; for nn.Linear U(±1 / √fan_in)
  xavier_uniform,   ///< U(±√(6 / (fan_in + fan_out)))             (Glorot & Bengio 2010)
  xavier_normal,    ///< N(0, 2 / (fan_in + fan_out))
  kaiming_uniform,  ///< U(±√(6 / fan_in))                         (He et al. 2015, gain √2)
  kaiming_normal,   ///< N(0, 2 / fan_in)
  normal,           ///< N(0, std²)
};

inline constexpr std::array<std::string_view, 6> kInitSchemeNames{"torch",           "xavier_uniform", "xavier_normal",
                                                                  "kaiming_uniform", "kaiming_normal", "normal"};

struct InitOptions {
  InitScheme scheme = InitScheme::torch;
  std::uint64_t seed = 0;
  double std = 0.02;  ///< of scheme normal
};

/// Throws CONFIG unless std is a number from 0 to 1e37.
void check_init_options(std::string_view op, const InitOptions& options);

/// Random numbers of one parameter: the same on every machine, from the seed and the parameter's place in its module.
class Random {
 public:
  Random(std::uint64_t seed, std::uint32_t parameter) : seed_(seed), parameter_(parameter) {}

  /// U(-bound, bound)                                                              (torch.nn.init.uniform_)
  void uniform(float* values, std::size_t count, double bound);
  /// N(0, std²)                                                                    (torch.nn.init.normal_)
  void normal(float* values, std::size_t count, double std);
  /// A weight (fan_out,fan_in).
  void weight(float* values, std::int64_t fan_out, std::int64_t fan_in, const InitOptions& options);
  /// A vector (1,1,width), for which torch takes the width as both fans.
  void row(float* values, std::int64_t width, const InitOptions& options);

 private:
  void draw(float* values, std::size_t count, std::int64_t fan_out, std::int64_t fan_in, const InitOptions& options);
  std::uint32_t next();
  double next_signed_unit();

  std::uint64_t seed_;
  std::uint32_t parameter_;
  std::uint64_t drawn_ = 0;
  std::uint32_t block_[4] = {};
};

}  // namespace attn
