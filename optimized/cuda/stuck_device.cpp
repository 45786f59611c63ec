#include "optimized/cuda/stuck_device.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <sstream>
#include <thread>
#include <utility>

#include "reference/core/machine/machine_error.h"

namespace ringlab::cuda {
namespace {

using StuckClock = std::chrono::steady_clock;

/// Pauses so shortly that it adds little to measured times.
void pause_after(std::chrono::duration<double> elapsed) {
  constexpr double kShare = 1.0 / 256, kLongestSeconds = 1e-3, kShortestSeconds = 20e-6;
  const double pause_s = std::min(elapsed.count() * kShare, kLongestSeconds);
  if (pause_s < kShortestSeconds) return std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::duration<double>(pause_s));
}

/// "a; b; and 3 more"
std::string first_of(const std::vector<std::string>& all) {
  constexpr std::size_t kMostTold = 12;
  std::string text;
  for (std::size_t i = 0; i < std::min(all.size(), kMostTold); ++i) {
    text += (i > 0 ? "; " : "") + all[i];
  }
  if (all.size() <= kMostTold) return text;
  return text + "; and " + std::to_string(all.size() - kMostTold) + " more";
}

}  // namespace

bool ends_within(double timeout_s, const std::function<bool()>& has_ended) {
  const auto begin = StuckClock::now();
  while (!has_ended()) {
    const std::chrono::duration<double> elapsed = StuckClock::now() - begin;
    if (elapsed.count() >= timeout_s) return false;
    pause_after(elapsed);
  }
  return true;
}

void throw_stuck(const std::string& where, double timeout_s,
                 const std::vector<std::string>& unended) {
  std::ostringstream seconds;
  seconds << timeout_s;
  throw DeviceStuck({.where = where,
                     .expected = "an end within " + seconds.str() + " s",
                     .actual = first_of(unended),
                     .hint = "Give a longer --timeout where so much is to be done"});
}

void keep_for_ever(std::shared_ptr<void> used) {
  static auto* const kept = new std::vector<std::shared_ptr<void>>();
  static std::mutex adding;
  const std::scoped_lock lock(adding);
  kept->push_back(std::move(used));
}

}  // namespace ringlab::cuda
