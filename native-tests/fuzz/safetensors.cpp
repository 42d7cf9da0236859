#include "attn/io/safetensors.hpp"

#include <algorithm>
#include <cstring>

#include "attn/io/safetensors_stream.hpp"
#include "fuzz.hpp"
#include "mutate.hpp"

namespace {

using namespace attn;

StateDict read_stream(fuzz::Bytes bytes, std::size_t piece) {
  detail::SafetensorsStream stream;
  StateDict state;
  std::vector<float*> places;
  bool has_header = false;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    stream.give(bytes.subspan(at, std::min(piece, bytes.size() - at)));
    if (!has_header && stream.has_header()) {
      has_header = true;
      MemoryEstimate memory("stream");
      for (const auto& entry : stream.entries())
        if (entry.type->is_float) memory.add(entry.name, entry.shape);
      memory.check();
      for (const auto& entry : stream.entries()) {
        places.push_back(nullptr);
        if (entry.type->is_float) places.back() = state.emplace(entry.name, attn::detail::empty_any(entry.shape)).first->second.data();
      }
    }
    detail::SafetensorsStream::Run run;
    while (stream.next(run)) {
      const auto& entry = stream.entries()[run.entry];
      fuzz::require(run.first + run.values.size() <= entry.count(), "a run is within its tensor");
      std::copy(run.values.begin(), run.values.end(), places[run.entry] + run.first);
    }
  }
  stream.finish();
  return state;
}

bool same(const StateDict& a, const StateDict& b) {
  const auto equal = [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.shape() == y.second.shape() &&
           (x.second.size() == 0 || std::memcmp(x.second.data(), y.second.data(), x.second.size() * sizeof(float)) == 0);
  };
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), equal);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::Bytes bytes(data, size);
  StateDict whole, pieces, again;
  const bool read = fuzz::succeeds([&] { whole = parse_safetensors(bytes); });
  constexpr std::size_t kPieces[] = {1, 5, 64, 4096};
  const bool streamed = fuzz::succeeds([&] { pieces = read_stream(bytes, kPieces[size % 4]); });
  fuzz::require(read == streamed, "a file is accepted as a whole if and only if it is accepted in pieces");
  if (!read) return 0;
  fuzz::require(same(whole, pieces), "pieces and the whole give the same tensors");
  fuzz::require(fuzz::succeeds([&] { again = parse_safetensors(write_safetensors(whole)); }), "tensors can be written and read again");
  fuzz::require(same(whole, again), "written tensors are read back unchanged");
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed) {
  fuzz::Random random(seed);
  std::uint64_t header_size = 0;
  if (size >= 8) std::memcpy(&header_size, data, 8);
  if (size < 8 || header_size > size - 8 || random() % 4 == 0) return LLVMFuzzerMutate(data, size, max_size);
  const auto header_end = static_cast<std::ptrdiff_t>(8 + header_size);
  const std::string header = fuzz::mutate_json(std::string(data + 8, data + header_end), random);
  std::string values(data + header_end, data + size);
  if (random() % 2 == 0) values.resize(random() % 32);
  if (8 + header.size() + values.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  header_size = header.size();
  std::memcpy(data, &header_size, 8);
  std::copy(header.begin(), header.end(), data + 8);
  std::copy(values.begin(), values.end(), data + 8 + header.size());
  return 8 + header.size() + values.size();
}
