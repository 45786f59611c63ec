#include "optimized/transport/mpi/mpi_blame.h"

#include <algorithm>
#include <thread>

namespace ringlab::mpi {
namespace {

constexpr std::chrono::microseconds kPause{200};

std::string name_of(int rank) { return "rank " + std::to_string(rank); }

std::string chain_text(const std::vector<int>& chain) {
  std::string text;
  for (const int rank : chain) text += (text.empty() ? "rank " : " → ") + std::to_string(rank);
  return text;
}

/// Questions to other ranks, and the answers that come within the grace. A rank answers only while
/// it waits itself, so that no answer means: dead, stopped, or computing without end.
class Inquiry {
 public:
  Inquiry(ControlChannel& control, Clock::duration grace, const std::function<bool()>& settled)
      : control_(control), grace_(grace), settled_(settled) {}

  bool settled() const { return is_settled_; }

  /// Asks all of `peers` at once and waits until all have answered or the grace is over.
  void ask(const std::vector<int>& peers) {
    for (const int peer : peers) control_.ask(peer);
    const auto end = Clock::now() + grace_;
    const auto has_answered = [&](int peer) { return control_.answer(peer).has_value(); };
    while (!std::ranges::all_of(peers, has_answered) && Clock::now() < end) {
      is_settled_ = settled_();
      if (is_settled_) return;
      control_.poll();
      std::this_thread::sleep_for(kPause);
    }
  }

 private:
  ControlChannel& control_;
  const Clock::duration grace_;
  const std::function<bool()>& settled_;
  bool is_settled_ = false;
};

Suspicion silent(int rank, Clock::duration grace) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(grace).count();
  return {rank, name_of(rank) + " does not answer within " + std::to_string(milliseconds) +
                    " ms: it is dead, stopped or busy elsewhere"};
}

/// Asks all ranks, for one that waits for the end of the job: the first that is silent is to blame,
/// else the first that still waits for somebody.
std::optional<Suspicion> ask_all(ControlChannel& control, Clock::duration grace, Inquiry& inquiry) {
  std::vector<int> others;
  for (int rank = 0; rank < control.ranks(); ++rank) {
    if (rank != control.rank()) others.push_back(rank);
  }
  inquiry.ask(others);
  if (inquiry.settled()) return {};
  for (const int rank : others) {
    if (!control.answer(rank)) return silent(rank, grace);
  }
  for (const int rank : others) {
    const int target = *control.answer(rank);
    if (target != kEverybody) {
      return Suspicion{
          rank, name_of(rank) + " still waits" + (target < 0 ? "" : " for " + name_of(target))};
    }
  }
  return Suspicion{kNobody, "all ranks answer and none of them goes on"};
}

}  // namespace

std::optional<Suspicion> find_suspect(ControlChannel& control, int peer, Clock::duration grace,
                                      const std::function<bool()>& settled) {
  Inquiry inquiry(control, grace, settled);
  if (peer == kEverybody) return ask_all(control, grace, inquiry);
  // Every rank on the chain waits for the next one. The chain ends at a rank that is silent, that
  // waits for nobody, or that stands on it already: then the wait is a circle, and no rank's fault.
  std::vector<int> chain = {control.rank()};
  for (int next = peer;;) {
    const bool closed = std::ranges::find(chain, next) != chain.end();
    chain.push_back(next);
    if (closed) {
      return Suspicion{kNobody, "a deadlock: " + chain_text(chain) + " wait for each other"};
    }
    inquiry.ask({next});
    if (inquiry.settled()) return {};
    const std::optional<int> answer = control.answer(next);
    if (!answer) return silent(next, grace);
    if (*answer == kEverybody) return Suspicion{next, name_of(next) + " has ended its part"};
    if (*answer == kNobody) return Suspicion{next, name_of(next) + " is at work elsewhere"};
    next = *answer;
  }
}

}  // namespace ringlab::mpi
