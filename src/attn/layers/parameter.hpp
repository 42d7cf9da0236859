#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attn/store/panels.hpp"
#include "attn/store/table.hpp"
#include "attn/tensor/shape.hpp"
#include "attn/tensor/state.hpp"

// Each layer lists its parameters once, in visit_parameters(). Loading, saving, initialization, int8 and optimisers all use that list. Internal.
namespace attn::detail {

class Linear;

/// How torch initializes a parameter, and whether quantize() converts it.
enum class ParameterKind : std::uint8_t {
  weight,      ///< (out,in) of a linear map, int8 on request: U(±1/√in)
  projection,  ///< of attention's query, key or value, int8 on request: U(±√(6 / (in + out))) with the sizes of the tensor in the state
  bias,        ///< of a linear map: U(±1/√in)
  zeros,       ///< other biases
  ones,        ///< the scale of a norm
  row,         ///< added key or value (1,1,width): N(0, 1/width)
  embedding,   ///< (N,E), int8 on request: N(0,1)
  table,       ///< as embedding, but always float32
};

/// Reference to a parameter of a layer. The layer must not be moved while the reference is in use.
struct ParameterRef {
  Shape shape = {};
  ParameterKind kind = ParameterKind::zeros;
  // Storage of the values: one of these. If it is `linear`, a parameter of rank 2 is the weight, any other the bias.
  std::vector<float>* vector = nullptr;
  Table* table = nullptr;
  Linear* linear = nullptr;
  bool* reproducible = nullptr;  ///< receives whether the layer's weights are int8
  float offset = 0;              ///< of a vector: its stored values are those of files plus this number
  std::int64_t zero_row = -1;    ///< row that is initialized to 0; -1: none

  // Set by the visitor.
  std::string name = {};     ///< of its tensor in the state
  std::size_t first = 0;     ///< index of its first value in that tensor
  std::uint32_t stream = 0;  ///< of the random numbers that initialize it

  std::size_t size() const;
  /// Length of a row, the last dimension; 1 for a vector.
  std::size_t row_size() const { return shape.rank() > 1 ? static_cast<std::size_t>(shape.back(0)) : 1; }
  /// Allocates the values, all zero.
  void allocate() const;
  /// Sets whole rows, starting at row `first`.
  void set_rows(std::size_t first, std::span<const float> rows) const;
  /// Copies all values to `values`, row-major.
  void get(float* values) const;
  void get_row(std::size_t row, float* values) const;
  /// Whether it is the weight of a linear map, whose rows are stored as panels.
  bool is_packed() const { return linear != nullptr && shape.rank() == 2; }
  /// Whether float32 values are stored as panels.
  bool has_panels() const { return is_packed() || (table != nullptr && table->is_shared()); }
  /// The float32 values: row-major, or as panels for the weight of a linear map and a table shared with a head; the other one is null. Both are null
  /// for int8.
  float* values() const;
  Panels<float>* panels() const;

  bool can_be_int8() const { return kind == ParameterKind::weight || kind == ParameterKind::projection || kind == ParameterKind::embedding; }
  bool is_quantized() const;
  /// Set int8 rows, starting at row `first`, and then the scales of all rows. A float32 parameter stores their products.
  void set_quantized_rows(std::size_t first, std::span<const std::int8_t> rows) const;
  void set_scales(std::span<const float> scales) const;
  /// Copies a row of an int8 parameter with its scale.
  void get_quantized_row(std::size_t row, std::int8_t* q, float* scale) const;

 private:
  std::vector<float>& numbers() const;
};

/// Throws FORMAT for NaN and infinity, which int8 cannot represent.
void check_finite(std::string_view op, std::string_view name, std::span<const float> values);

/// A tensor of a state or checkpoint: parameters stacked by rows, such as the three projections in in_proj_weight. A transposed tensor is set as a
/// whole; int8 files hold it by rows.
struct StateTensor {
  std::vector<ParameterRef> pieces;
  bool is_transposed = false;  ///< the tensor is (in,out), and the parameters are stacked by columns
  std::size_t block = 0;       ///< if above 0, the tensor has `block` rows of each piece in turn, as GPT-NeoX's projections of a head

  Shape shape() const;
  std::size_t size() const;
  /// The tensor as int8 files hold it: (out,in), with a scale per row.
  StateTensor by_rows() const { return {pieces, false, block}; }
  /// Returns the place of a piece's row among the rows of the tensor.
  std::size_t row_of(std::size_t piece, std::size_t row) const;
  /// Number of values that set_rows() needs at a time: a row, or all values of a transposed tensor.
  std::size_t row_size() const { return is_transposed ? size() : pieces.front().row_size(); }
  bool is_quantized() const { return pieces.front().is_quantized(); }
  bool can_be_int8() const { return pieces.front().can_be_int8(); }

  // As in ParameterRef.
  void set_rows(std::size_t first, std::span<const float> rows) const;
  void set_quantized_rows(std::size_t first, std::span<const std::int8_t> rows) const;
  void set_scales(std::span<const float> scales) const;
  void get(float* values) const;
  /// Copies int8 values, row-major, and the scales of the rows. Throws as check_finite.
  void get_quantized(std::string_view op, std::string_view name, std::int8_t* values, float* scales) const;
};
using StateTensors = std::map<std::string, StateTensor>;

/// Collects the parameters of a layer: visit_parameters(visitor) calls add() for the layer's own and part() for those of its sublayers.
class ParameterVisitor {
 public:
  enum class Names : std::uint8_t {
    torch,     ///< torch's names: attention has in_proj_weight
    separate,  ///< one tensor per parameter: q_proj.weight, k_proj.weight, v_proj.weight
  };

  /// If a state is given, the projections of each attention get the names that they have there, which may be of either form.
  explicit ParameterVisitor(Names names = Names::torch, const StateView* state = nullptr) : names_(names), state_(state) {}

  /// Visits a sublayer whose names have this prefix, such as "linear1."; further arguments are passed on to it.
  template <class Part, class... More>
  void part(std::string_view prefix, Part& part, More... more) {
    const std::size_t size = prefix_.size();
    prefix_ += prefix;
    part.visit_parameters(*this, more...);
    prefix_.resize(size);
  }
  void add(std::string_view name, ParameterRef parameter) { add(name, std::move(parameter), name, 0); }
  /// Adds an embedding table unless it is empty.
  void add_table(std::string_view name, Table& table) {
    const Shape shape{static_cast<std::int64_t>(table.rows()), static_cast<std::int64_t>(table.width())};
    if (!table.empty()) add(name, {.shape = shape, .kind = ParameterKind::table, .table = &table});
  }
  /// Adds a piece of a tensor, in which its first value has index `first`.
  void add(std::string_view name, ParameterRef parameter, std::string_view torch_name, std::size_t first);
  /// Returns whether the state has this tensor.
  bool is_in_state(std::string_view name) const { return state_ != nullptr && state_->contains(prefix_ + std::string(name)); }

  StateTensors take() { return std::move(tensors_); }

  /// Random number stream of the next parameter. Layers advance it in a fixed order, so that a seed always gives the same weights.
  std::uint32_t stream = 0;

 private:
  Names names_;
  const StateView* state_;
  std::string prefix_;
  StateTensors tensors_;
};

}  // namespace attn::detail
