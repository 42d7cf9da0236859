#include "attn/io/gguf/reader.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "attn/io/gguf/json_object.hpp"
#include "attn/tensor/float_environment.hpp"

namespace attn::detail::gguf {
namespace {

constexpr std::uint64_t kPiece = 1 << 20;

std::span<const std::uint8_t> bytes_of(std::string_view text) { return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}; }
std::span<const std::uint8_t> bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(float)};
}

/// Rows of a head are (D/2,2): the halves of (2,D/2) interleaved.
void undo_interleaving(std::vector<float>& values, std::uint64_t width, std::uint64_t D) {
  const std::vector<float> from = values;
  for (std::uint64_t row = 0; row < values.size() / width; ++row) {
    const std::uint64_t head = row / D * D, at = row % D, other = head + 2 * (at % (D / 2)) + at / (D / 2);
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(other * width), width, values.begin() + static_cast<std::ptrdiff_t>(row * width));
  }
}

/// Rows (3,H,D) become (H,3,D).
void join_parts(std::vector<float>& values, std::uint64_t width, std::uint64_t D) {
  const std::vector<float> from = values;
  const std::uint64_t rows = values.size() / width, heads = rows / (3 * D);
  for (std::uint64_t row = 0; row < rows; ++row) {
    const std::uint64_t head = row / (3 * D), part = row / D % 3, other = (part * heads + head) * D + row % D;
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(other * width), width, values.begin() + static_cast<std::ptrdiff_t>(row * width));
  }
}

void transpose(std::vector<float>& values, std::uint64_t width) {
  const std::vector<float> from = values;
  const std::uint64_t rows = values.size() / width;
  for (std::uint64_t row = 0; row < rows; ++row)
    for (std::uint64_t column = 0; column < width; ++column) values[column * rows + row] = from[row * width + column];
}

std::vector<float> divisors_of(std::istream& file, const Header& header) {
  std::vector<float> values;
  if (const Tensor* const tensor = rope_divisors(header)) {
    values.resize(static_cast<std::size_t>(tensor->dims[0]));
    file.clear();
    file.seekg(static_cast<std::streamoff>(tensor->first));
    file.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(tensor->bytes));
    if (!file) refuse("the file", {"a readable file"}, {"unreadable at ", tensor->name});
  }
  return values;
}

}  // namespace

Reader::Reader(std::istream& file, std::uint64_t size)
    : file_(file), header_(read_header(file, size)), architecture_(read_architecture(header_, divisors_of(file, header_))) {
  try {
    tokenizer_ = read_tokenizer_files(header_.metadata);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
    no_tokenizer_ = error;
  }
}

std::optional<std::vector<std::uint8_t>> Reader::read(std::string_view name) const {
  const auto copy = [](const std::string& text) { return std::vector<std::uint8_t>(text.begin(), text.end()); };
  if (name == "config.json") return copy(architecture_.config);
  if (name == "generation_config.json") return copy(read_generation_config(header_.metadata));
  if (tokenizer_ && name == "tokenizer.json") return copy(tokenizer_->tokenizer);
  if (tokenizer_ && name == "tokenizer_config.json") return copy(tokenizer_->tokenizer_config);
  return std::nullopt;
}

void Reader::write_weights(const Write& write) {
  const FloatEnvironment environment;
  JsonObject entries;
  std::uint64_t end = 0;
  for (const NamedTensor& named : architecture_.tensors) {
    std::string shape;
    std::uint64_t size = sizeof(float);
    for (const std::int64_t dim : named.shape) {
      shape += text({shape.empty() ? "[" : ",", dim});
      size *= static_cast<std::uint64_t>(dim);
    }
    const std::string offsets = text({"[", end, ",", end + size, "]"});
    entries.add(named.name, JsonObject().add_string("dtype", "F32").add("shape", shape + "]").add("data_offsets", offsets).take());
    end += size;
  }
  const std::string header = entries.take();
  std::uint8_t prefix[8];
  const std::uint64_t size = header.size();
  std::memcpy(prefix, &size, sizeof size);
  write(prefix);
  write(bytes_of(header));
  for (const NamedTensor& named : architecture_.tensors) write_tensor(named, write);
}

void Reader::write_tensor(const NamedTensor& named, const Write& write) {
  const Tensor& tensor = *named.tensor;
  // If the order stays, rows are blocks, for small pieces. A bias is a column, so that its heads have rows.
  const bool is_flat = named.order == Order::same || named.order == Order::less_one || (tensor.dims.size() == 1 && tensor.type->values == 1);
  const std::uint64_t width = is_flat ? tensor.type->values : tensor.dims[0];
  const std::uint64_t row_bytes = is_flat ? tensor.type->bytes : tensor.row_bytes(), rows = tensor.bytes / row_bytes;
  const std::uint64_t unit = named.order == Order::transposed || named.order == Order::by_parts ? rows : named.head_rows;
  const std::uint64_t step = std::max<std::uint64_t>(1, kPiece / (unit * width * sizeof(float))) * unit;
  file_.clear();
  file_.seekg(static_cast<std::streamoff>(tensor.first));
  std::vector<std::uint8_t> blocks;
  std::vector<float> values;
  for (std::uint64_t row = 0; row < rows; row += step) {
    const std::uint64_t count = std::min(step, rows - row);
    blocks.resize(static_cast<std::size_t>(count * row_bytes));
    file_.read(reinterpret_cast<char*>(blocks.data()), static_cast<std::streamsize>(blocks.size()));
    if (!file_) refuse("the file", {"a readable file"}, {"unreadable at ", tensor.name});
    values.resize(static_cast<std::size_t>(count * width));
    tensor.type->expand(blocks.data(), blocks.size() / tensor.type->bytes, values.data());
    if (named.order == Order::rotary) undo_interleaving(values, width, named.head_rows);
    if (named.order == Order::by_parts) join_parts(values, width, named.head_rows);
    if (named.order == Order::transposed) transpose(values, width);
    if (named.order == Order::less_one)
      for (float& value : values) value -= 1;
    write(bytes_of(values));
  }
}

}  // namespace attn::detail::gguf
