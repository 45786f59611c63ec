// A progress line on standard error, on a terminal only, for work that takes over a second.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace ringlab::cli {

/// Draws itself a few times per second from a thread of its own and wipes itself when it goes out
/// of scope. Writes nothing when standard error is not a terminal. Thread-safe.
class Progress {
 public:
  explicit Progress(std::string label);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `done` of `total`; with a total of 0 only the time is shown.
  void update(int done, int total, const std::string& label);

 private:
  void draw_until_stopped();
  std::string line() const;

  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable stop_signal_;
  std::string label_;
  int done_ = 0;
  int total_ = 0;
  bool stopped_ = false;
  std::thread drawer_;
};

}  // namespace ringlab::cli
