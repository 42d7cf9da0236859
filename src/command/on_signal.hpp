#pragma once

#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

namespace command {

/// Calls a function, in a thread of its own, when Ctrl-C, kill or the end of the terminal is to end the program, which then ends so. Made before the
/// threads that compute.
class OnSignal {
 public:
  explicit OnSignal(std::function<void()> clean_up);
  ~OnSignal();
  OnSignal(const OnSignal&) = delete;
  OnSignal& operator=(const OnSignal&) = delete;

 private:
  void wait();

  std::function<void()> clean_up_;
  sigset_t signals_{}, before_{};
  std::atomic<bool> done_{false};
  std::thread thread_;
};

}  // namespace command
