// Laws in rounds over several subjects: one round, so many rounds, or for a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "property_tests/verify.h"

namespace ringlab::verify {

struct RoundsOptions {
  /// The options of every round; its round, haste and progress are set here.
  VerifyOptions laws;
  std::int64_t rounds = 1;  ///< at most
  /// The time after which no case begins; failing cases are still made simpler.
  double seconds = std::numeric_limits<double>::infinity();
  int threads = 1;
  /// Ends everything at once, shrinking too; asked often, from several threads.
  std::function<bool()> interrupted = {};
};

/// The progress of a run, for whoever watches.
struct RoundsProgress {
  std::atomic<std::int64_t> turns = 0;   ///< law by law, over all subjects and rounds
  std::atomic<std::int64_t> cases = 0;   ///< begun, with discarded ones and those of shrinking
  std::atomic<std::int64_t> broken = 0;  ///< laws

  /// "SUBJECT LAW" of the turn that was given last.
  std::string at_work() const {
    const std::lock_guard lock(mutex_);
    return at_work_;
  }
  void set_at_work(std::string text) {
    const std::lock_guard lock(mutex_);
    at_work_ = std::move(text);
  }

 private:
  mutable std::mutex mutex_;
  std::string at_work_;
};

struct SubjectRounds {
  SubjectVerdict verdict;
  /// Rounds of which every law that was still to be tried had all its cases.
  std::int64_t whole_rounds = 0;
};

/// Gives turns: one law of one round of one subject, the subject that had least time first, so that
/// each gets the same share of it. A round takes all laws in order; a law that was broken is not
/// tried again, nor one that does not apply. Cases depend on seed, round, law and their number per
/// law alone: neither on the threads nor on the time. Where a subject crashes under many laws, only
/// the first crashes are made simpler, for every try takes a new process; for subjects that several
/// threads call, it may change which crashes are first. Foreign implementations are called by one
/// thread at a time.
std::vector<SubjectRounds> verify_in_rounds(const std::vector<Subject>& subjects,
                                            const RoundsOptions& options, RoundsProgress& progress);

/// Adds the verdict of a later round. `total` must not be broken.
void add_round(LawVerdict& total, const LawVerdict& round);

}  // namespace ringlab::verify
