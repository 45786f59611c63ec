// Schedules as a graph: ranks are lanes, a message touches its slot from its post to its wait, and
// waits come after posts of the other rank.
//
// A post never blocks, and posts are never taken back; so one order decides about all delays. If
// sends are not buffered, a wait for a send comes after the post of its receive. Buffering removes
// conditions and adds none: a schedule that ends without buffers ends with any number of them, and
// where a transport buffers some messages and not others.
#include "property_tests/programs/schedule_check.h"

#include <algorithm>
#include <map>
#include <set>

#include "property_tests/programs/contents.h"
#include "property_tests/programs/schedule_laws.h"
#include "reference/core/schedule/operation_words.h"

namespace ringlab {
namespace {

using namespace programs;

enum class Sends { buffered, unbuffered };

/// An operation of a rank. The operations of all ranks are numbered, rank by rank.
struct Node {
  int rank = 0;
  const Operation* operation = nullptr;
  std::optional<std::size_t> other = {};  ///< a post's wait, a wait's post
};

/// The first posts of a message.
struct Posts {
  std::vector<std::size_t> sends = {}, receives = {};
};

class ScheduleCheck {
 public:
  ScheduleCheck(const Schedule& schedule, Findings& findings)
      : schedule_(schedule), findings_(findings) {
    for (int rank = 0; rank < ranks(); ++rank) {
      for (const Operation& operation : program(rank)) nodes_.push_back({rank, &operation});
    }
    for (std::size_t i = 0; i < nodes_.size(); ++i) take_in(i);
  }

  void run() {
    for (const auto& [message, waiting] : posted_) {
      for (const std::size_t post : waiting) report(post, "nobody waits for it");
    }
    check_races();
    for (const auto& [message, posts] : posts_) check_ends(posts);
    check_progress();
  }

 private:
  int ranks() const { return static_cast<int>(schedule_.ranks.size()); }
  const std::vector<Operation>& program(int rank) const {
    return schedule_.ranks[static_cast<std::size_t>(rank)].operations;
  }
  const Operation& operation(std::size_t node) const { return *nodes_[node].operation; }
  MessageKey message(std::size_t node) const {
    return message_of(nodes_[node].rank, operation(node));
  }
  std::string place(std::size_t node) const {
    return ringlab::place(nodes_[node].rank, operation(node));
  }
  void report(std::size_t node, const std::string& what) {
    findings_.push_back(place(node) + ": " + what);
  }
  Report report_of(std::size_t node) {
    return [this, node](const std::string& what) { report(node, what); };
  }

  void take_in(std::size_t node) {
    if (!is_message(operation(node))) return;
    const bool sends = is_send(operation(node));
    Posts& posts = posts_[message(node)];
    std::vector<std::size_t>& waiting = posted_[{message(node), sends}];
    if (is_wait(operation(node))) return pair(node, waiting);
    (sends ? posts.sends : posts.receives).push_back(node);
    waiting.push_back(node);
  }

  void pair(std::size_t wait, std::vector<std::size_t>& posted) {
    if (posted.empty()) return report(wait, "it was not posted before, or was waited for already");
    const std::size_t post = posted.front();
    posted.erase(posted.begin());
    nodes_[post].other = wait;
    nodes_[wait].other = post;
    if (slot_of(operation(post)) == slot_of(operation(wait))) return;
    report(wait, "it was posted with " + slot_name(post));
  }
  std::string slot_name(std::size_t node) const {
    return slot_text(operation(node).payload, slot_of(operation(node)));
  }

  void check_races() {
    std::vector<Accesses> accesses;
    for (const Node& node : nodes_) {
      accesses.push_back(accesses_of(node.rank, *node.operation, schedule_.pass));
    }
    const auto has_ended = [&](std::size_t earlier, std::size_t later) {
      return !is_message(operation(earlier)) || nodes_[earlier].other.value_or(later + 1) < later;
    };
    for (const Race& race : races_among(accesses, has_ended)) {
      report(race.later, slot_name(race.earlier) + (is_send(operation(race.earlier))
                                                        ? " is still being sent from"
                                                        : " is still being received into"));
    }
  }

  void check_ends(const Posts& posts) {
    for (std::size_t i = 0; i < std::max(posts.sends.size(), posts.receives.size()); ++i) {
      if (i >= posts.receives.size()) report(posts.sends[i], "nobody receives it");
      if (i >= posts.sends.size()) report(posts.receives[i], "nobody sends it");
      if (i > 0 && i < posts.sends.size()) report(posts.sends[i], "it is sent again");
    }
  }

  std::vector<std::size_t> reached(Sends sends) const {
    Order order(schedule_.ranks.size());
    for (const Node& node : nodes_) order.add(static_cast<std::size_t>(node.rank));
    for (std::size_t wait = 0; wait < nodes_.size(); ++wait) {
      const bool for_send = is_send(operation(wait));
      if (!is_wait(operation(wait)) || (for_send && sends == Sends::buffered)) continue;
      const Posts& both = posts_.at(message(wait));
      const std::vector<std::size_t>& posts = for_send ? both.receives : both.sends;
      if (posts.empty()) order.block(wait);
      if (!posts.empty()) order.add_after(wait, posts.front());
    }
    return order.reached();
  }

  void check_progress() {
    const std::vector<std::size_t> order = reached(Sends::unbuffered);
    Contents contents(ranks(), schedule_.pass);
    for (const std::size_t node : order) follow(node, contents);
    if (order.size() == nodes_.size()) return contents.check_end(schedule_, findings_);
    const std::vector<std::size_t> buffered = reached(Sends::buffered);
    findings_.push_back(buffered.size() == nodes_.size()
                            ? "deadlock unless sends are buffered: " + chain(order)
                            : "deadlock even when sends are buffered: " + chain(buffered));
  }

  void follow(std::size_t node, Contents& contents) {
    const Operation& o = operation(node);
    const int rank = nodes_[node].rank;
    switch (o.verb) {
      case Verb::post_send:
        sent_[message(node)] =
            contents.send(o.payload, {rank, slot_of(o)}, o.owner, report_of(node));
        return;
      case Verb::wait_receive: {
        const std::size_t post = nodes_[node].other.value_or(node);
        return contents.receive(o.payload, {rank, slot_of(operation(post))},
                                sent_.at(message(node)), report_of(post));
      }
      case Verb::compute:
        return contents.compute(rank, o, report_of(node));
      case Verb::add:
        return contents.add(rank, o, report_of(node));
      case Verb::post_receive:
      case Verb::wait_send:
        break;
    }
  }

  /// Who waits for whom, from the first rank that is stuck until the chain ends or closes.
  std::string chain(const std::vector<std::size_t>& order) const {
    std::vector<std::optional<std::size_t>> stuck(schedule_.ranks.size());
    const std::set<std::size_t> done(order.begin(), order.end());
    for (std::size_t node = nodes_.size(); node-- > 0;) {
      if (!done.contains(node)) stuck[static_cast<std::size_t>(nodes_[node].rank)] = node;
    }
    auto at = std::ranges::find_if(stuck, [](const auto& node) { return node.has_value(); });
    std::string text;
    for (std::set<std::size_t> seen; seen.insert(**at).second;) {
      const int peer = operation(**at).peer;
      text += place(**at) + " waits for ";
      at = stuck.begin() + peer;
      if (!at->has_value()) return text + "rank " + std::to_string(peer) + ", which has ended";
    }
    return text + place(**at);
  }

  const Schedule& schedule_;
  Findings& findings_;
  std::vector<Node> nodes_;
  std::map<MessageKey, Posts> posts_;
  std::map<std::pair<MessageKey, bool>, std::vector<std::size_t>> posted_;  // not yet waited for
  std::map<MessageKey, Held> sent_;
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

std::vector<std::string> check_schedule(const Schedule& schedule, const NeedMatrix& need) {
  Findings findings;
  if (!check_numbers(schedule, need, findings)) return findings;
  check_visits(schedule, need, findings);
  for (int rank = 0; rank < need.ranks(); ++rank) {
    check_declared(rank, schedule.ranks[static_cast<std::size_t>(rank)], schedule.pass, findings);
  }
  ScheduleCheck(schedule, findings).run();
  return findings;
}

}  // namespace ringlab
