#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attn/memory/panels.hpp"
#include "attn/memory/table.hpp"
#include "attn/tensor/shape.hpp"
#include "attn/tensor/state.hpp"

// Each layer lists its parameters once, in visit_parameters(), for loading, saving, initialization, int8 and optimisers.
namespace attn::detail {

class Linear;

/// How torch initializes a parameter, and whether quantize() converts it.
enum class ParameterKind : std::uint8_t {
  weight,      ///< (out,in), int8 on request: U(±1/√in)
  projection,  ///< of query, key or value, int8 on request: U(±√(6 / (in + out))) with the sizes of the tensor in the state
  bias,        ///< U(±1/√in)
  zeros,       ///< other biases
  ones,        ///< the scale of a norm
  row,         ///< added key or value (1,1,width): N(0, 1/width)
  embedding,   ///< (N,E), int8 on request: N(0,1)
  table,       ///< as embedding, but always float32
};

/// The layer must not move while the reference is in use.
struct ParameterRef {
  Shape shape = {};
  ParameterKind kind = ParameterKind::zeros;
  // One of these holds the values. In `linear`, rank 2 is the weight, any other the bias.
  std::vector<float>* vector = nullptr;
  Table* table = nullptr;
  Linear* linear = nullptr;
  bool* reproducible = nullptr;  ///< receives whether the layer's weights are int8
  float offset = 0;              ///< of a vector: stored values are those of files plus this
  std::int64_t zero_row = -1;    ///< initialized to 0; -1: none

  // Set by the visitor.
  std::string name = {};     ///< in the state
  std::size_t first = 0;     ///< index of its first value in that tensor
  std::uint32_t stream = 0;  ///< of random numbers

  std::size_t size() const;
  std::size_t row_size() const { return shape.rank() > 1 ? static_cast<std::size_t>(shape.back(0)) : 1; }
  /// All zero.
  void allocate() const;
  /// Whole rows, from row `first`.
  void set_rows(std::size_t first, std::span<const float> rows) const;
  void get(float* values) const;
  void get_row(std::size_t row, float* values) const;
  bool is_packed() const { return linear != nullptr && shape.rank() == 2; }
  bool has_panels() const { return is_packed() || (table != nullptr && table->is_shared()); }
  /// Float32 values: values() row-major, panels() for weights and tables shared with a head; the other one, and for int8 both, is null.
  float* values() const;
  Panels<float>* panels() const;

  bool can_be_int8() const { return kind == ParameterKind::weight || kind == ParameterKind::projection || kind == ParameterKind::embedding; }
  bool is_quantized() const;
  /// First int8 rows, then the scales of all rows. A float32 parameter stores their products.
  void set_quantized_rows(std::size_t first, std::span<const std::int8_t> rows) const;
  void set_scales(std::span<const float> scales) const;
  void get_quantized_row(std::size_t row, std::int8_t* q, float* scale) const;

 private:
  std::vector<float>& numbers() const;
};

void check_finite(std::string_view op, std::string_view name, std::span<const float> values);

/// Parameters stacked by rows, such as in_proj_weight. A transposed tensor is set as a whole; int8 files hold it by rows.
struct StateTensor {
  std::vector<ParameterRef> pieces;
  bool is_transposed = false;  ///< (in,out), with the parameters stacked by columns
  std::size_t block = 0;       ///< if above 0: `block` rows of each piece in turn, as in GPT-NeoX
  Shape own_shape = {};        ///< if not of rank 0: of a convolution, whose values are those of the weight

  Shape shape() const;
  std::size_t size() const;
  /// As int8 files hold it: (out,in).
  StateTensor by_rows() const { return {pieces, false, block}; }
  std::size_t row_of(std::size_t piece, std::size_t row) const;
  /// Number of values that set_rows() needs at a time.
  std::size_t row_size() const { return is_transposed ? size() : pieces.front().row_size(); }
  bool is_quantized() const { return pieces.front().is_quantized(); }
  bool can_be_int8() const { return own_shape.rank() == 0 && pieces.front().can_be_int8(); }

  // As in ParameterRef.
  void set_rows(std::size_t first, std::span<const float> rows) const;
  void set_quantized_rows(std::size_t first, std::span<const std::int8_t> rows) const;
  void set_scales(std::span<const float> scales) const;
  void get(float* values) const;
  /// Row-major, with a scale per row.
  void get_quantized(std::string_view op, std::string_view name, std::int8_t* values, float* scales) const;
};
using StateTensors = std::map<std::string, StateTensor>;

/// visit_parameters(visitor) of a layer calls add() for its own parameters and part() for its sublayers.
class ParameterVisitor {
 public:
  enum class Names : std::uint8_t {
    torch,     ///< in_proj_weight
    separate,  ///< q_proj.weight, k_proj.weight, v_proj.weight
  };

  /// With a state, the projections of each attention get the form of names that it has.
  explicit ParameterVisitor(Names names = Names::torch, const StateView* state = nullptr) : names_(names), state_(state) {}

  template <class Part, class... More>
  void part(std::string_view prefix, Part& part, More... more) {
    const std::size_t size = prefix_.size();
    prefix_ += prefix;
    part.visit_parameters(*this, more...);
    prefix_.resize(size);
  }
  void add(std::string_view name, ParameterRef parameter) { add(name, std::move(parameter), name, 0); }
  void add_table(std::string_view name, Table& table) {
    const Shape shape{static_cast<std::int64_t>(table.rows()), static_cast<std::int64_t>(table.width())};
    if (!table.empty()) add(name, {.shape = shape, .kind = ParameterKind::table, .table = &table});
  }
  /// `first` is the index of the parameter's first value in the tensor.
  void add(std::string_view name, ParameterRef parameter, std::string_view torch_name, std::size_t first);
  bool is_in_state(std::string_view name) const { return state_ != nullptr && state_->contains(prefix_ + std::string(name)); }

  StateTensors take() { return std::move(tensors_); }

  /// Layers advance it in a fixed order, so that a seed always gives the same weights.
  std::uint32_t stream = 0;

 private:
  Names names_;
  const StateView* state_;
  std::string prefix_;
  StateTensors tensors_;
};

}  // namespace attn::detail
