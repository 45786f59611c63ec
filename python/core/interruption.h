// Interruption of a long computation by Ctrl-C.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <utility>

namespace ringlab::python {

/// Listens for signals in the caller's thread while another one computes; for one computation.
class Interruption {
 public:
  /// Calls compute() without the GIL and returns its result. If the handler of a signal raises
  /// meanwhile, as that of Ctrl-C does, check() throws from then on, and when compute() is over, by
  /// a result or an error, the handler's exception is thrown.
  template <class Compute>
  auto listen(const Compute& compute) {
    auto computed = [&] {
      const nanobind::gil_scoped_release released;
      auto result = std::async(compute);  // later, in this thread, where there can be no other one
      while (result.wait_for(kBetweenLooks) == std::future_status::timeout) look();
      return result;
    }();
    if (raised_) throw nanobind::python_error(std::move(*raised_));
    const nanobind::gil_scoped_release released;
    return computed.get();
  }
  /// To be called by the computation, now and then, from any thread.
  void check() const {
    if (is_wanted_) throw Unwanted();
  }

 private:
  static constexpr std::chrono::milliseconds kBetweenLooks{50};
  struct Unwanted {};

  void look() {
    if (raised_) return;
    const nanobind::gil_scoped_acquire held;
    if (PyErr_CheckSignals() == 0) return;
    raised_.emplace();
    is_wanted_ = true;
  }

  std::optional<nanobind::python_error> raised_;
  std::atomic<bool> is_wanted_ = false;
};

}  // namespace ringlab::python
