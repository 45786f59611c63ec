// Timing contenders against each other: in turn, in one process, as medians and ratios.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/line/spread.h"
#include "reference/core/error.h"

namespace ringlab::bench {

/// The message of the environment error that `work` throws; empty when it throws nothing.
template <class Work>
std::string failure_of(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::environment) throw;
    return error.what();
  }
  return "";
}

/// One way of doing the work that is compared.
struct Contender {
  std::string name;
  std::function<void()> work;
  /// In place of `work`: work that times itself, better than the wall clock would, in seconds.
  std::function<double()> timed_work = {};
};

/// A contender that works on the calling thread alone and is timed by that thread's processor time:
/// other load on a shared machine costs it cache, but no turns.
Contender on_one_thread(std::string name, std::function<void()> work);

using cli::Spread;
using cli::spread_of;

/// The spread times `factor`.
Spread scaled(const Spread& spread, double factor);
/// `factor` over the spread: p10 and p90 change places.
Spread inverse(const Spread& spread, double factor);

struct Timing {
  std::string name;
  Spread seconds;
  Spread ratio;              ///< time over the first contender's, round by round
  std::string failure = {};  ///< why times or ratios are missing; empty when none are
};

struct TimingOptions {
  int rounds = 11;  ///< every contender once per round, in an order of its own
  std::function<void(int done, int total)> progress = {};
};

/// Runs every contender once unmeasured, then `rounds` times in turn. Ratios are taken within a
/// round, so that a machine that changes its speed changes both sides. A contender that throws an
/// environment error is left out from then on, with its failure; without the first contender the
/// others have no ratios. Other exceptions pass through.
std::vector<Timing> time_in_turn(const std::vector<Contender>& contenders,
                                 const TimingOptions& options);

}  // namespace ringlab::bench
