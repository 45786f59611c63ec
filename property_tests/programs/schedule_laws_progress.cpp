// What holds between ranks: messages have two ends, nobody waits for ever, gradients come home.
//
// Why one execution decides about all delays. A post never blocks, and a wait is enabled by a post
// of another rank: wait_receive by the matching post_send; wait_send by the matching post_receive
// when sends are not buffered, by nothing when they are. Posts are never taken back, so an enabled
// operation stays enabled, and which message it matches is fixed by its key. Two operations that
// are enabled at the same time therefore commute, and every maximal execution, in whatever order
// and after whatever delays, executes the same set of operations with the same data. If one
// execution gets to the end, all do (there is no cycle in the graph "waits for"); if one gets
// stuck, every one gets stuck in the same place.
//
// Buffering removes conditions and adds none: what gets through with unbuffered sends gets through
// with any number of buffers. A transport may also buffer some messages and not others.
#include <algorithm>
#include <map>
#include <set>

#include "property_tests/programs/schedule_laws.h"

namespace ringlab::schedule_laws {
namespace {

enum class Sends { buffered, unbuffered };

/// Which ranks contributed how often to a sum of dK, dV, by (rank, owner of the chunk).
using Sum = std::map<std::pair<int, int>, int>;

/// Executes all ranks as far as they get.
class Execution {
 public:
  Execution(const Schedule& schedule, Sends sends)
      : schedule_(schedule), sends_(sends), at_(schedule.ranks.size()) {
    for (const RankSchedule& program : schedule.ranks) {
      sums_.emplace_back(static_cast<std::size_t>(program.gradient_slots) + 1);
    }
  }

  /// Whether all ranks get to the end.
  bool run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < ranks(); ++rank) {
        while (next_of(rank) != nullptr && is_enabled(rank, *next_of(rank))) {
          execute(rank, *next_of(rank));
          ++at_[static_cast<std::size_t>(rank)];
          moved = true;
        }
      }
    }
    return first_stuck() == kNobody;
  }

  /// Who waits for whom, from the first rank that is stuck until the chain ends or closes.
  std::string chain() const {
    std::string text;
    std::set<int> seen;
    int rank = first_stuck();
    while (seen.insert(rank).second) {
      const Operation& operation = *next_of(rank);
      text += place(rank, operation) + " waits for ";
      rank = operation.peer;
      if (next_of(rank) == nullptr) {
        return text + "rank " + std::to_string(rank) + ", which has ended";
      }
    }
    return text + place(rank, *next_of(rank));
  }

  const Sum& home_sum(int rank) const { return sums_[static_cast<std::size_t>(rank)].front(); }

 private:
  int ranks() const { return static_cast<int>(schedule_.ranks.size()); }
  const Operation* next_of(int rank) const {
    const auto& operations = schedule_.ranks[static_cast<std::size_t>(rank)].operations;
    const std::size_t at = at_[static_cast<std::size_t>(rank)];
    return at < operations.size() ? &operations[at] : nullptr;
  }
  int first_stuck() const {
    for (int rank = 0; rank < ranks(); ++rank) {
      if (next_of(rank) != nullptr) return rank;
    }
    return kNobody;
  }

  bool is_enabled(int rank, const Operation& operation) const {
    const Verb verb = operation.verb;
    if (verb == Verb::wait_receive) return sent_.contains(message_of(rank, operation));
    if (verb == Verb::wait_send && sends_ == Sends::unbuffered) {
      return received_.contains(message_of(rank, operation));
    }
    return true;
  }

  Sum& sum_in(int rank, int slot) {
    return sums_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(slot + 1)];
  }

  void execute(int rank, const Operation& operation) {
    const Verb verb = operation.verb;
    const bool gradient = concerns_gradients(operation);
    if (verb == Verb::post_receive) received_.insert(message_of(rank, operation));
    if (verb == Verb::post_send) {
      sent_[message_of(rank, operation)] = gradient ? sum_in(rank, operation.gradient) : Sum{};
    }
    if (verb == Verb::wait_receive && gradient) {
      sum_in(rank, operation.gradient) = sent_.at(message_of(rank, operation));
    }
    if (verb == Verb::compute) contribute(rank, operation);
    if (verb == Verb::add) {
      const Sum addend = sum_in(rank, operation.addend);
      for (const auto& [part, times] : addend) sum_in(rank, operation.gradient)[part] += times;
    }
  }

  /// A compute starts a new sum, except that of the own chunk, which begins as zero.
  void contribute(int rank, const Operation& operation) {
    Sum& sum = sum_in(rank, operation.gradient);
    if (operation.gradient != kHome) sum.clear();
    ++sum[{rank, operation.owner}];
  }

  const Schedule& schedule_;
  Sends sends_;
  std::vector<std::size_t> at_;         // next operation of each rank
  std::map<MessageKey, Sum> sent_;      // posted sends and, of gradients, what they hold
  std::set<MessageKey> received_;       // posted receives
  std::vector<std::vector<Sum>> sums_;  // per rank, by gradient slot + 1
};

/// Where `rank` computes on the chunk of `owner`.
const Operation* compute_of(const Schedule& schedule, int rank, int owner) {
  for (const Operation& operation : schedule.ranks[static_cast<std::size_t>(rank)].operations) {
    if (operation.verb == Verb::compute && operation.owner == owner) return &operation;
  }
  return nullptr;
}

void check_home_sum(const Schedule& schedule, const Sum& sum, int owner, Findings& findings) {
  const std::string home = " the sum of rank " + std::to_string(owner);
  for (int rank = 0; rank < static_cast<int>(schedule.ranks.size()); ++rank) {
    const Operation* compute = compute_of(schedule, rank, owner);
    if (compute == nullptr || sum.contains({rank, owner})) continue;
    findings.push_back(place(rank, *compute) + ": its dK and dV never reach" + home);
  }
  for (const auto& [part, times] : sum) {
    const Operation& compute = *compute_of(schedule, part.first, part.second);
    if (part.second != owner) {
      findings.push_back(place(part.first, compute) + ": its dK and dV are added to" + home);
    } else if (times > 1) {
      findings.push_back(place(part.first, compute) + ": its dK and dV are added " +
                         std::to_string(times) + " times to" + home);
    }
  }
}

struct Ends {
  std::vector<std::string> sends, receives;
};

void check_ends(const Ends& ends, Findings& findings) {
  for (std::size_t i = 0; i < std::max(ends.sends.size(), ends.receives.size()); ++i) {
    if (i >= ends.receives.size()) findings.push_back(ends.sends[i] + ": nobody receives it");
    if (i >= ends.sends.size()) findings.push_back(ends.receives[i] + ": nobody sends it");
    if (i > 0 && i < ends.sends.size()) findings.push_back(ends.sends[i] + ": it is sent again");
  }
}

}  // namespace

void check_messages(const Schedule& schedule, Findings& findings) {
  std::map<MessageKey, Ends> messages;
  for (int rank = 0; rank < static_cast<int>(schedule.ranks.size()); ++rank) {
    for (const Operation& operation : schedule.ranks[static_cast<std::size_t>(rank)].operations) {
      const Verb verb = operation.verb;
      if (verb != Verb::post_send && verb != Verb::post_receive) continue;
      Ends& ends = messages[message_of(rank, operation)];
      (verb == Verb::post_send ? ends.sends : ends.receives).push_back(place(rank, operation));
    }
  }
  for (const auto& [key, ends] : messages) check_ends(ends, findings);
}

void check_progress(const Schedule& schedule, const NeedMatrix& need, Findings& findings) {
  Execution unbuffered(schedule, Sends::unbuffered);
  if (!unbuffered.run()) {
    Execution buffered(schedule, Sends::buffered);
    findings.push_back(buffered.run()
                           ? "deadlock unless sends are buffered: " + unbuffered.chain()
                           : "deadlock even when sends are buffered: " + buffered.chain());
    return;
  }
  if (schedule.pass == Pass::forward) return;
  for (int owner = 0; owner < need.ranks(); ++owner) {
    check_home_sum(schedule, unbuffered.home_sum(owner), owner, findings);
  }
}

}  // namespace ringlab::schedule_laws
