// Who holds a run up: a rank whose steps take longer, or a link that delivers slower, than the
// others. Nobody is named unless it stands out.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string>

#include "reference/core/run.h"

namespace ringlab::report {

/// Step times of one rank. NaN: unknown, and the rank is left out.
struct StepTimes {
  double seconds = std::numeric_limits<double>::quiet_NaN();  ///< of a typical step, waits excluded
  double work = 1;   ///< of a typical step: (query, key) pairs, or 1 where that is not known
  double steps = 1;  ///< number of steps
};

/// Seconds that a rank or link must cost a measured run to be named: a tenth of it, and a quarter
/// of a second at least. A busy machine delays anybody by less now and then.
double least_cost_s(double run_seconds);

/// A straggler takes longer than this times the median of the others.
inline constexpr double kStragglerFactor = 1.5;

struct Slowest {
  int rank = 0;
  double seconds = 0;
  double others_s = 0;  ///< median of the other ranks, the lower one of two
  double factor = 0;    ///< seconds / others_s
};

/// Nothing where fewer than two ranks are known, or the others take no time at all.
std::optional<Slowest> slowest_rank(std::span<const StepTimes> ranks);

/// The slowest rank if it is beyond kStragglerFactor in seconds and also in seconds per work (so
/// that nobody is accused for having more to do), and what its steps take longer than the others'
/// is at least `least_cost_s` in all.
std::optional<Slowest> find_straggler(std::span<const StepTimes> ranks, double least_cost_s);

/// Traffic of one link, and the seconds that its sender was busy besides.
struct Link {
  int to = 0;
  LinkStats stats;
  double sender_busy_s = 0;

  /// transfer_s without what the sender may explain: while it computes it need not serve the link,
  /// since many transports move bytes only inside of their own calls.
  double unexplained_s() const;
};

/// A slow link takes longer per byte than this times the median of the others.
inline constexpr double kSlowLinkFactor = 3;

struct SlowLink {
  int from = 0;
  int to = 0;
  double waited_s = 0;            ///< what nothing but the link explains
  double bytes_per_s = 0;         ///< received / waited_s
  double others_bytes_per_s = 0;  ///< median of the others; +inf when nobody waited for them
};

/// The slowest link, if it is beyond kSlowLinkFactor and was waited for `least_cost_s`. Only links
/// that carried bytes are compared; there must be two.
std::optional<SlowLink> find_slow_link(std::span<const Link> links, double least_cost_s);

/// "rank 1: 412.0 ms a step, 4.1 times the median of the others"
std::string straggler_sentence(const Slowest& straggler);
/// "rank 1 to rank 2: 2.3 MiB/s in 840.1 ms of waiting, the others 400 MiB/s"
std::string slow_link_sentence(const SlowLink& link);

}  // namespace ringlab::report
