#pragma once

#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

namespace command {

/// Runs a function in its own thread before SIGINT, SIGTERM or SIGHUP ends the program. Create it before threads that
/// compute, which inherit its signal mask.
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
