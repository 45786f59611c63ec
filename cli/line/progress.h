// A progress line on standard error, on a terminal only, for work that takes over a second.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace ringlab::cli {

/// Counters of work, which other threads raise.
struct WatchedWork {
  const std::atomic<std::int64_t>* done = nullptr;
  std::int64_t total = 0;
};

/// "[####....]  33 %" of a share between 0 and 1.
std::string progress_bar(double share);
/// "41 s", "3:05", "1:00:12".
std::string progress_time(double seconds);

/// Draws itself a few times per second from a thread of its own and wipes itself when it goes out
/// of scope. Writes nothing when standard error is not a terminal. Thread-safe.
class Progress {
 public:
  explicit Progress(std::string label);
  /// Reads the counters of `work`, and shows the time that is left at this pace.
  Progress(std::string label, WatchedWork work);
  /// Draws what `line` returns, called from the drawing thread with the seconds so far.
  explicit Progress(std::function<std::string(double)> line);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `done` of `total`; with a total of 0 only the time is shown.
  void update(int done, int total, const std::string& label);

 private:
  void start();
  void draw_until_stopped();
  std::string line() const;
  std::string watched_line(double seconds) const;

  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable stop_signal_;
  std::string label_;
  const WatchedWork work_ = {};
  const std::function<std::string(double)> line_ = {};
  int done_ = 0;
  int total_ = 0;
  bool stopped_ = false;
  std::thread drawer_;
};

}  // namespace ringlab::cli
