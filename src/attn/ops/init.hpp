#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace attn {

/// Distributions of torch.nn.init.
enum class InitScheme : std::uint8_t {
  torch,            ///< default of the torch constructors; for nn.Linear U(±1 / √fan_in)
  xavier_uniform,   ///< U(±√(6 / (fan_in + fan_out)))             (Glorot & Bengio 2010)
  xavier_normal,    ///< N(0, 2 / (fan_in + fan_out))
  kaiming_uniform,  ///< U(±√(6 / fan_in))                         (He et al. 2015, gain √2)
  kaiming_normal,   ///< N(0, 2 / fan_in)
  normal,           ///< N(0, std²)
};

inline constexpr std::array<std::string_view, 6> kInitSchemeNames{"torch",           "xavier_uniform", "xavier_normal",
                                                                  "kaiming_uniform", "kaiming_normal", "normal"};

/// Options for Module::initialize().
struct InitOptions {
  InitScheme scheme = InitScheme::torch;
  std::uint64_t seed = 0;
  double std = 0.02;  ///< for scheme normal
};

/// Throws CONFIG unless std is a number from 0 to 1e37.
/// @code
/// try {
///   attn::check_init_options("my_layer", {.scheme = attn::InitScheme::normal, .std = -1});
/// } catch (const attn::Error& error) {
///   std::cout << to_string(error.code());  // CONFIG
/// }
/// @endcode
void check_init_options(std::string_view op, const InitOptions& options);

/// Random numbers for one parameter, determined by the seed and the parameter's index in its module; the same on every machine.
/// @code
/// std::vector<float> a(3), b(3);
/// attn::Random(7, 0).normal(a.data(), 3, 0.02);
/// attn::Random(7, 0).normal(b.data(), 3, 0.02);
/// std::cout << (a == b);  // 1
/// @endcode
class Random {
 public:
  /// Starts the numbers of parameter number `parameter` of a module with this seed; Random has an example.
  Random(std::uint64_t seed, std::uint32_t parameter) : seed_(seed), parameter_(parameter) {}

  /// Draws from U(-bound, bound)                                                   (torch.nn.init.uniform_)
  /// @code
  /// std::vector<float> values(1000);
  /// attn::Random(7, 0).uniform(values.data(), values.size(), 0.5);
  /// const auto [least, most] = std::minmax_element(values.begin(), values.end());
  /// std::cout << (*least >= -0.5F && *most <= 0.5F);  // 1
  /// @endcode
  void uniform(float* values, std::size_t count, double bound);
  /// Draws from N(0, std²); Random has an example.                                 (torch.nn.init.normal_)
  void normal(float* values, std::size_t count, double std);
  /// Draws a weight (fan_out,fan_in).
  /// @code
  /// std::vector<float> values(2 * 3);
  /// attn::Random(7, 0).weight(values.data(), 2, 3, {.scheme = attn::InitScheme::xavier_uniform});
  /// std::cout << (std::abs(values[0]) <= std::sqrt(6.0 / (3 + 2)));  // 1
  /// @endcode
  void weight(float* values, std::int64_t fan_out, std::int64_t fan_in, const InitOptions& options);
  /// Draws a vector (1,1,width), for which torch uses the width as fan_in and fan_out. Otherwise as weight().
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
