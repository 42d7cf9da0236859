#include "attn/memory/scratch.hpp"

#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <cstdint>
#include <new>
#include <thread>
#include <utility>
#include <vector>

namespace attn::test {
namespace ops_scratch_test {

using detail::Scratch;
using detail::Workspace;

/// AddressSanitizer then detects foreign memory.
float* filled(Scratch& scratch, std::size_t n, float value) {
  float* const p = scratch.take(n);
  if (!detail::counts()) std::fill_n(p, n, value);
  return p;
}
bool holds(const float* p, std::size_t n, float value) {
  return detail::counts() || std::all_of(p, p + n, [&](float x) { return x == value; });
}
template <class Call>
auto checked(const Call& call) {
  detail::check_memory("a test", call);
  return call();
}

TEST_CASE("a size that overflows is bad_alloc", "[scratch]") {
  constexpr std::size_t kTooMany = ~std::size_t{0} / sizeof(float) + 1;
  CHECK_THROWS_AS(AlignedFloats(kTooMany), std::bad_alloc);
  CHECK_THROWS_AS(AlignedFloats(kTooMany + 16), std::bad_alloc);
  Scratch scratch;
  CHECK_THROWS_AS(scratch.take(kTooMany), std::bad_alloc);
}

TEST_CASE("scratch memory begins at a cache line and never overlaps, with or without a workspace, whether or not it fits", "[scratch]") {
  Workspace workspace;
  for (Workspace* const from : {static_cast<Workspace*>(nullptr), &workspace, &workspace})
    for (int round = 0; round < 2; ++round) {
      if (round == 1) detail::check_memory("a test", [&] { Scratch(from).take(500); });
      Scratch scratch(from);
      std::vector<float*> taken;
      const std::vector<std::size_t> sizes{1, 16, 0, 17, 1000, 5, 3};
      for (std::size_t i = 0; i < sizes.size(); ++i)
        taken.push_back(filled(scratch, sizes[i] * static_cast<std::size_t>(1 + round), static_cast<float>(i)));
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        CHECK(reinterpret_cast<std::uintptr_t>(taken[i]) % 64 == 0);
        CHECK(holds(taken[i], sizes[i] * static_cast<std::size_t>(1 + round), static_cast<float>(i)));
      }
    }
}

TEST_CASE("a frame releases only the memory that was taken in it", "[scratch]") {
  Workspace workspace;
  std::vector<float*> places[2];
  for (std::vector<float*>& place : places) {
    if (&place == &places[1]) detail::check_memory("a test", [&] { Scratch(&workspace).take(1000); });
    Scratch scratch(&workspace);
    float* const before = filled(scratch, 40, 1);
    for (int repeat = 0; repeat < 3; ++repeat) {
      const Scratch::Frame outer(scratch);
      float* const first = filled(scratch, 100, 2);
      {
        const Scratch::Frame inner(scratch);
        place.push_back(filled(scratch, 300, 3));
      }
      place.push_back(filled(scratch, 200, 4));
      CHECK(holds(first, 100, 2));
    }
    CHECK(holds(before, 40, 1));
  }
  for (const float* const place : places[1]) CHECK(place == places[1][0]);
}

TEST_CASE("a workspace grows to its peak use and then stays at the same address", "[scratch]") {
  Workspace workspace;
  const auto use = [&](std::size_t n) {
    return checked([&] {
      Scratch scratch(&workspace);
      {
        const Scratch::Frame frame(scratch);
        filled(scratch, n, 1);
      }
      filled(scratch, n / 2, 2);
      return std::pair{filled(scratch, n / 2, 3), scratch.take(0)};
    });
  };
  const auto [part, end] = use(1024);
  CHECK(end == part + 512);
  for (const std::size_t n : {1024U, 64U, 512U, 1024U}) {
    INFO(n);
    const auto [now, after] = use(n);
    CHECK(now == part - 512 + n / 2);
    CHECK(after == now + n / 2);
  }
  const auto [larger, larger_end] = use(4096);
  CHECK(larger_end == larger + 2048);
}

TEST_CASE("a second simultaneous user of a workspace allocates its own memory and leaves the workspace unchanged", "[scratch]") {
  Workspace workspace;
  const auto place = [&] {
    Scratch scratch(&workspace);
    return filled(scratch, 256, 0);
  };
  float* const block = checked(place);
  {
    Scratch one(&workspace);
    float* const mine = filled(one, 256, 1);
    CHECK(mine == block);
    {
      Scratch two(&workspace), three(&workspace);
      CHECK(filled(two, 100, 2) != block);
      CHECK(filled(three, 5000, 3) != block);
    }
    Scratch four(&workspace);
    CHECK(filled(four, 256, 4) != block);
    CHECK(holds(mine, 256, 1));
  }
  CHECK(place() == block);
}

TEST_CASE("a released workspace frees its memory immediately, or when its current user ends", "[scratch]") {
  // The system may return the same address.
  Workspace idle, taken, never, other;
  const auto grown = [](Workspace& workspace) {
    Scratch scratch(&workspace);
    // Two such blocks are adjacent in no heap.
    float* const first = filled(scratch, 256, 0);
    return scratch.take(8192) == first + 256;
  };
  const auto check_growth = [&](Workspace& workspace) {
    CHECK_FALSE(grown(workspace));
    CHECK(checked([&] { return grown(workspace); }));
    CHECK(grown(workspace));
  };
  for (Workspace* const workspace : {&idle, &taken, &other}) check_growth(*workspace);
  {
    Scratch user(&taken);
    float* const mine = filled(user, 256, 1);
    Workspace::release_all();
    CHECK(holds(mine, 256, 1));
    CHECK(holds(filled(user, 256, 2), 256, 2));
    CHECK(holds(mine, 256, 1));
  }
  for (Workspace* const workspace : {&idle, &taken, &never, &other}) check_growth(*workspace);
  {
    Workspace gone;
    checked([&] { return grown(gone); });
  }
  Workspace::release_all();
  CHECK_FALSE(grown(idle));
}

TEST_CASE("several threads can create, use and destroy layers while memory is released", "[scratch][threads]") {
  std::atomic<int> wrong{0}, running{3};
  Workspace shared;
  std::vector<std::thread> users;
  for (int user = 0; user < 3; ++user)
    users.emplace_back([&, user] {
      for (int i = 0; i < 2000; ++i) {
        Workspace own;
        for (Workspace* const workspace : {&shared, &own, &own}) {
          detail::check_memory("a test", [&] { Scratch(workspace).take(64 + static_cast<std::size_t>(i) % 5 * 300); });
          Scratch scratch(workspace);
          const auto value = static_cast<float>(user * 2000 + i);
          const std::size_t size = 64 + static_cast<std::size_t>(i) % 7 * 100;
          float* const mine = filled(scratch, size, value);
          filled(scratch, size, 0);
          if (!holds(mine, size, value)) ++wrong;
        }
      }
      --running;
    });
  while (running.load() > 0) Workspace::release_all();
  for (std::thread& user : users) user.join();
  CHECK(wrong.load() == 0);
  const auto place = [&] {
    Scratch scratch(&shared);
    return filled(scratch, 4096, 0);
  };
  Workspace::release_all();
  float* const block = checked(place);
  CHECK(place() == block);
}

TEST_CASE("moving a workspace leaves its memory behind, and both objects work", "[scratch]") {
  Workspace workspace;
  const auto place = [](Workspace& in) {
    return checked([&] {
      Scratch scratch(&in);
      return filled(scratch, 256, 0);
    });
  };
  float* const block = place(workspace);
  Workspace made(std::move(workspace)), assigned;
  float* const own = place(assigned);
  assigned = std::move(made);
  CHECK(place(made) != block);
  CHECK(place(assigned) == own);
  CHECK(place(workspace) == block);  // NOLINT(bugprone-use-after-move)
}

}  // namespace ops_scratch_test
}  // namespace attn::test
