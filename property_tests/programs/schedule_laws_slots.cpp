// Slots and waits: what one rank's program must get right whatever the other ranks do.
//
// A rank executes its operations in order, so these laws need no clock: a slot is in use by a
// message from its post until its wait, and by a compute or a sum just where that stands.
#include <algorithm>
#include <set>

#include "property_tests/programs/schedule_laws.h"

namespace ringlab::schedule_laws {
namespace {

/// What a slot is known to hold at one point of the program.
struct Content {
  int owner = kNobody;
  bool arriving = false;  ///< a receive into it was posted and not yet waited for
  int sends = 0;          ///< sends from it that were not yet waited for
  /// Gradients: where this sum was made, until it is sent or added somewhere.
  const Operation* unused = nullptr;
};

/// Walks through one rank's program.
class Watch {
 public:
  Watch(int rank, const RankSchedule& program, Findings& findings, bool backward)
      : rank_(rank),
        program_(program),
        findings_(findings),
        backward_(backward),
        chunks_(static_cast<std::size_t>(program.slots) + 1),
        sums_(static_cast<std::size_t>(program.gradient_slots) + 1) {
    chunks_.front().owner = rank;  // kHome
    sums_.front().owner = rank;
  }

  void walk() {
    for (const Operation& operation : program_.operations) follow(operation);
    for (const Operation* posted : posted_) report(*posted, "nobody waits for it");
    for (const Content& sum : sums_) must_be_used(sum);
  }

 private:
  void report(const Operation& operation, const std::string& what) {
    findings_.push_back(place(rank_, operation) + ": " + what);
  }

  void follow(const Operation& operation) {
    switch (operation.verb) {
      case Verb::post_receive:
        return post_receive(operation);
      case Verb::post_send:
        return post_send(operation);
      case Verb::wait_receive:
      case Verb::wait_send:
        return wait(operation);
      case Verb::compute:
        return compute(operation);
      case Verb::add:
        return add(operation);
    }
  }

  // The slot of K and V, or of gradients, that an operation names.
  static bool is_sum(const Operation& operation) { return concerns_gradients(operation); }
  static std::string name_of(const Operation& operation) {
    return name_of(slot_of(operation), is_sum(operation));
  }
  static std::string name_of(int slot, bool sum) {
    if (slot == kHome) return sum ? "the own sum" : "the own chunk";
    return (sum ? "gradient slot " : "slot ") + std::to_string(slot);
  }
  Content& content_of(const Operation& operation) {
    return is_sum(operation) ? sum_in(operation.gradient) : chunk_in(operation.slot);
  }
  Content& chunk_in(int slot) { return chunks_[static_cast<std::size_t>(slot + 1)]; }
  Content& sum_in(int slot) { return sums_[static_cast<std::size_t>(slot + 1)]; }

  void must_hold(const Operation& operation, const Content& content, const std::string& name) {
    if (content.arriving) report(operation, name + " is still being received into");
    if (content.owner == operation.owner) return;
    report(operation,
           name + (content.owner == kNobody ? " holds nothing"
                                            : " holds chunk " + std::to_string(content.owner)));
  }
  void must_be_free(const Operation& operation, const Content& content, const std::string& name) {
    if (content.arriving) report(operation, name + " is still being received into");
    if (content.sends > 0) report(operation, name + " is still being sent from");
  }

  void must_be_used(const Content& sum) {
    if (sum.unused != nullptr) report(*sum.unused, "its sum is neither sent nor added");
  }
  /// Sending and adding use a sum up; the own one stays.
  void use_up(const Operation& operation, Content& sum, int slot) {
    if (slot == kHome) return;
    if (sum.unused == nullptr) report(operation, name_of(slot, true) + " was used up before");
    sum.unused = nullptr;
  }

  void post_receive(const Operation& operation) {
    Content& content = content_of(operation);
    if (slot_of(operation) == kHome) report(operation, "it would overwrite " + name_of(operation));
    must_be_free(operation, content, name_of(operation));
    must_be_used(content);
    content.owner = operation.owner;
    content.arriving = true;
    content.unused = nullptr;
    posted_.push_back(&operation);
  }

  void post_send(const Operation& operation) {
    Content& content = content_of(operation);
    must_hold(operation, content, name_of(operation));
    if (is_sum(operation)) use_up(operation, content, operation.gradient);
    ++content.sends;
    posted_.push_back(&operation);
  }

  void wait(const Operation& operation) {
    const bool receives = operation.verb == Verb::wait_receive;
    const Verb wanted = receives ? Verb::post_receive : Verb::post_send;
    const auto found = std::ranges::find_if(posted_, [&](const Operation* posted) {
      return posted->verb == wanted && message_of(rank_, *posted) == message_of(rank_, operation);
    });
    if (found == posted_.end()) {
      return report(operation, "it was not posted before, or was waited for already");
    }
    const Operation& posted = **found;
    if (slot_of(posted) != slot_of(operation)) {
      report(operation, "it was posted with " + name_of(posted));
    }
    Content& content = content_of(posted);
    if (receives) {
      content.arriving = false;
      if (is_sum(posted)) content.unused = &posted;
    } else {
      --content.sends;
    }
    posted_.erase(found);
  }

  void compute(const Operation& operation) {
    must_hold(operation, chunk_in(operation.slot), name_of(operation.slot, false));
    if (!backward_) return;
    Content& sum = sum_in(operation.gradient);
    must_be_free(operation, sum, name_of(operation.gradient, true));
    if ((operation.gradient == kHome) != (operation.owner == rank_)) {
      report(operation, "its dK and dV do not belong into " + name_of(operation.gradient, true));
    }
    if (operation.gradient == kHome) return;
    must_be_used(sum);
    sum.owner = operation.owner;
    sum.unused = &operation;
  }

  void add(const Operation& operation) {
    const std::string sum = name_of(operation.gradient, true);
    const std::string addend = name_of(operation.addend, true);
    must_hold(operation, sum_in(operation.addend), addend);
    must_hold(operation, sum_in(operation.gradient), sum);
    if (operation.addend == operation.gradient)
      return report(operation, "it adds " + sum + " to itself");
    if (operation.gradient != kHome && sum_in(operation.gradient).unused == nullptr) {
      report(operation, sum + " was used up before");
    }
    use_up(operation, sum_in(operation.addend), operation.addend);
  }

  int rank_;
  const RankSchedule& program_;
  Findings& findings_;
  bool backward_;
  std::vector<Content> chunks_, sums_;  // by slot + 1
  std::vector<const Operation*> posted_;
};

/// K/V slots are numbered without gaps; of the gradient slots the last one is used.
void check_declared(int rank, const RankSchedule& program, Pass pass, Findings& findings) {
  std::set<int> slots = {kHome};
  std::set<int> sums = {kHome};
  for (const Operation& operation : program.operations) {
    if (!concerns_gradients(operation)) slots.insert(operation.slot);
    if (pass == Pass::forward) continue;
    const bool sum = concerns_gradients(operation) || operation.verb == Verb::compute;
    if (sum) sums.insert(operation.gradient);
    if (operation.verb == Verb::add) sums.insert(operation.addend);
  }
  const std::string who = "rank " + std::to_string(rank) + ", all steps: ";
  const auto used = static_cast<int>(slots.size()) - 1;
  if (used != program.slots) {
    findings.push_back(who + "it uses " + std::to_string(used) + " slots and declares " +
                       std::to_string(program.slots));
  }
  if (*sums.rbegin() + 1 != program.gradient_slots) {
    findings.push_back(who + "it uses gradient slots up to " + std::to_string(*sums.rbegin()) +
                       " and declares " + std::to_string(program.gradient_slots));
  }
}

}  // namespace

void check_slots(const Schedule& schedule, Findings& findings) {
  for (int rank = 0; rank < static_cast<int>(schedule.ranks.size()); ++rank) {
    const RankSchedule& program = schedule.ranks[static_cast<std::size_t>(rank)];
    Watch(rank, program, findings, schedule.pass == Pass::backward).walk();
    check_declared(rank, program, schedule.pass, findings);
  }
}

}  // namespace ringlab::schedule_laws
