#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace ringlab::cli {
namespace {

constexpr auto kQuietTime = std::chrono::milliseconds(1000);
constexpr auto kRedrawTime = std::chrono::milliseconds(150);
constexpr const char* kWipeLine = "\r\x1b[K";

}  // namespace

Progress::Progress(std::string label) : label_(std::move(label)) {
  if (::isatty(STDERR_FILENO)) drawer_ = std::thread([this] { draw_until_stopped(); });
}

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  stop_signal_.notify_all();
  if (drawer_.joinable()) drawer_.join();
}

void Progress::update(int done, int total, const std::string& label) {
  const std::lock_guard lock(mutex_);
  done_ = done;
  total_ = total;
  label_ = label;
}

void Progress::draw_until_stopped() {
  std::unique_lock lock(mutex_);
  if (stop_signal_.wait_for(lock, kQuietTime, [this] { return stopped_; })) return;
  do {
    fmt::print(stderr, "{}{}", kWipeLine, line());
    std::fflush(stderr);
  } while (!stop_signal_.wait_for(lock, kRedrawTime, [this] { return stopped_; }));
  fmt::print(stderr, "{}", kWipeLine);
  std::fflush(stderr);
}

std::string Progress::line() const {
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  if (total_ <= 0) return fmt::format("{}  {:.0f} s", label_.substr(0, 60), seconds);
  constexpr int kBarWidth = 24;
  const int filled = std::clamp(kBarWidth * done_ / total_, 0, kBarWidth);
  return fmt::format("[{}{}] {:3d} %  {:.0f} s  {}",
                     std::string(static_cast<std::size_t>(filled), '#'),
                     std::string(static_cast<std::size_t>(kBarWidth - filled), '.'),
                     std::clamp(100 * done_ / total_, 0, 100), seconds, label_.substr(0, 40));
}

}  // namespace ringlab::cli
