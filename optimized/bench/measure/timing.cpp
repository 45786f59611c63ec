#include "optimized/bench/measure/timing.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <limits>
#include <random>
#include <utility>

namespace ringlab::bench {
namespace {

double seconds_of(const Contender& contender) {
  if (contender.timed_work) return contender.timed_work();
  const auto start = std::chrono::steady_clock::now();
  contender.work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double thread_seconds() {
  std::timespec now = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// A contender while it is measured.
struct Runner {
  const Contender& contender;
  std::vector<double> seconds = {}, ratios = {};
  std::string failure = {};

  /// Seconds of one run; NaN once the contender has failed.
  double run() {
    double took = std::numeric_limits<double>::quiet_NaN();
    if (failure.empty()) failure = failure_of([&] { took = seconds_of(contender); });
    return took;
  }
  Timing timing(const Runner& first) const {
    Timing timing{contender.name, {}, {}, failure};
    if (failure.empty()) timing.seconds = spread_of(seconds);
    if (failure.empty()) timing.failure = first.failure;
    if (timing.failure.empty()) timing.ratio = spread_of(ratios);
    return timing;
  }
};

}  // namespace

Contender on_one_thread(std::string name, std::function<void()> work) {
  const auto timed = [work = std::move(work)] {
    const double start = thread_seconds();
    work();
    return thread_seconds() - start;
  };
  return {std::move(name), {}, timed};
}

Spread scaled(const Spread& spread, double factor) {
  return {factor * spread.median, factor * spread.p10, factor * spread.p90};
}

Spread inverse(const Spread& spread, double factor) {
  return {factor / spread.median, factor / spread.p90, factor / spread.p10};
}

std::vector<Timing> time_in_turn(const std::vector<Contender>& contenders,
                                 const TimingOptions& options) {
  std::vector<Runner> runners;
  for (const Contender& contender : contenders) runners.push_back({contender});
  for (Runner& runner : runners) runner.run();
  std::vector<Runner*> order;
  for (Runner& runner : runners) order.push_back(&runner);
  std::mt19937_64 dice(1);
  for (int round = 0; round < options.rounds; ++round) {
    // Shuffled: a contender leaves the processor hot or cold for the next one, which thus varies.
    std::shuffle(order.begin(), order.end(), dice);
    for (Runner* runner : order) runner->seconds.push_back(runner->run());
    for (Runner& runner : runners) {
      runner.ratios.push_back(runner.seconds.back() / runners[0].seconds.back());
    }
    if (options.progress) options.progress(round + 1, options.rounds);
  }
  std::vector<Timing> timings;
  for (const Runner& runner : runners) timings.push_back(runner.timing(runners[0]));
  return timings;
}

}  // namespace ringlab::bench
