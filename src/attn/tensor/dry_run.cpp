#include "attn/tensor/dry_run.hpp"

#include <algorithm>
#include <new>

#include "attn/tensor/aligned.hpp"

namespace attn {
namespace detail {
namespace {

#ifdef __wasm__
constinit DryRun* now = nullptr;  // tasks, which other threads run, do not count
#else
constinit thread_local DryRun* now = nullptr;
#endif

constexpr std::uintptr_t kLine = 64;

std::uint64_t saturating_sum(std::uint64_t a, std::uint64_t b) { return a + b < a ? UINT64_MAX : a + b; }

}  // namespace

DryRun::DryRun(std::string_view op) noexcept : op_(op) { now = this; }

DryRun* DryRun::current() noexcept { return now; }

void DryRun::end() noexcept {
  if (now == this) now = nullptr;
}

void* DryRun::add(std::uint64_t bytes, bool is_lasting) noexcept {
  std::uint64_t& sum = is_lasting ? lasting_ : bytes_;
  sum = saturating_sum(sum, bytes);
  most_ = std::max(most_, bytes_);
  all_ += bytes / kLine + 1;
  // Not at the start of a line, so that it is told apart from real memory.
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(all_) * kLine + sizeof(double));
}

void DryRun::check(std::string_view what) const { check_memory_limit(op_, what, saturating_sum(lasting_, most_)); }

bool counts() noexcept { return now != nullptr; }

float* counted(const Shape& shape, std::string_view what) {
  return static_cast<float*>(now->add(sizeof(float) * static_cast<std::uint64_t>(checked_size(shape, now->op(), what))));
}

void* allocate_lines(std::uint64_t bytes) {
  if (now != nullptr) return now->add(bytes);
  if (bytes > SIZE_MAX - kLine) throw std::bad_alloc();
  return ::operator new(static_cast<std::size_t>(bytes), std::align_val_t{kLine});
}

void free_lines(void* block, std::uint64_t bytes) noexcept {
  if (reinterpret_cast<std::uintptr_t>(block) % kLine == 0)
    ::operator delete(block, std::align_val_t{kLine});
  else if (now != nullptr)
    now->remove(bytes);
}

}  // namespace detail
}  // namespace attn
