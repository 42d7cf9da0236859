#include "on_signal.hpp"

#include <utility>

#include <pthread.h>

namespace command {

OnSignal::OnSignal(std::function<void()> clean_up) : clean_up_(std::move(clean_up)) {
  sigemptyset(&signals_);
  for (const int each : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now{};
    sigaction(each, nullptr, &now);
    // SIGHUP stays ignored under nohup.
    if (now.sa_handler != SIG_IGN) sigaddset(&signals_, each);
  }
  sigaddset(&signals_, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  thread_ = std::thread([this] { wait(); });
}

OnSignal::~OnSignal() {
  done_ = true;
  pthread_kill(thread_.native_handle(), SIGUSR2);
  thread_.join();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void OnSignal::wait() {
  int caught = 0;
  sigwait(&signals_, &caught);
  if (done_) return;
  clean_up_();
  std::signal(caught, SIG_DFL);
  raise(caught);
  pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
}

}  // namespace command
