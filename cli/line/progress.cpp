#include "cli/line/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <system_error>
#include <utility>

#include "reference/core/machine/plain_text.h"

namespace ringlab::cli {
namespace {

constexpr auto kQuietTime = std::chrono::milliseconds(1000);
constexpr auto kRedrawTime = std::chrono::milliseconds(150);
constexpr const char* kWipeLine = "\r\x1b[K";

}  // namespace

std::string progress_bar(double share) {
  constexpr int kBarWidth = 24;
  const int filled = std::clamp(static_cast<int>(kBarWidth * share), 0, kBarWidth);
  return fmt::format("[{}{}] {:3d} %", std::string(static_cast<std::size_t>(filled), '#'),
                     std::string(static_cast<std::size_t>(kBarWidth - filled), '.'),
                     std::clamp(static_cast<int>(100 * share), 0, 100));
}

std::string progress_time(double seconds) {
  if (seconds < 60) return fmt::format("{:.0f} s", seconds);
  const auto whole = static_cast<std::int64_t>(seconds);
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

Progress::Progress(std::string label) : label_(std::move(label)) { start(); }

Progress::Progress(std::string label, WatchedWork work) : label_(std::move(label)), work_(work) {
  start();
}

Progress::Progress(std::function<std::string(double)> line) : line_(std::move(line)) { start(); }

void Progress::start() {
  if (!::isatty(STDERR_FILENO)) return;
  try {
    drawer_ = std::thread([this] { draw_until_stopped(); });
  } catch (const std::system_error&) {  // the work can do without a bar
  }
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
    std::fputs((kWipeLine + plain_text(line())).c_str(), stderr);
    std::fflush(stderr);
  } while (!stop_signal_.wait_for(lock, kRedrawTime, [this] { return stopped_; }));
  std::fputs(kWipeLine, stderr);
  std::fflush(stderr);
}

std::string Progress::line() const {
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  if (line_) return line_(seconds);
  if (work_.done) return watched_line(seconds);
  if (total_ <= 0) return fmt::format("{}  {:.0f} s", label_.substr(0, 60), seconds);
  return fmt::format("{}  {:.0f} s  {}", progress_bar(static_cast<double>(done_) / total_), seconds,
                     label_.substr(0, 40));
}

std::string Progress::watched_line(double seconds) const {
  const auto done = static_cast<double>(work_.done->load(std::memory_order_relaxed));
  const auto total = static_cast<double>(std::max<std::int64_t>(work_.total, 1));
  if (done <= 0) return fmt::format("{}  {}", label_.substr(0, 60), progress_time(seconds));
  return fmt::format("{}  {}, {} left  {}", progress_bar(done / total), progress_time(seconds),
                     progress_time(seconds * (total - done) / done), label_.substr(0, 40));
}

}  // namespace ringlab::cli
