// Who meets whom: sends and receives of all ranks, each rank in the order of issue.
//
// That is the strictest order in which ranks may be executed. Streams side by side wait for less,
// and messages of a communicator are matched in the same order, so what ends here ends there.
#include <algorithm>

#include "property_tests/programs/message_laws.h"

namespace ringlab::ring::message_laws {
namespace {

MessageSide other(MessageSide side) {
  return side == MessageSide::send ? MessageSide::receive : MessageSide::send;
}

/// A rank on its way through its program.
struct Walker {
  const MessageProgram* program = nullptr;
  std::size_t at = 0;
  std::vector<MessageEnd> left = {};  ///< of the exchange that it is in

  bool is_done() const { return at == program->operations.size(); }
  const MessageOperation& front() const { return program->operations[at]; }
  bool is_in_exchange() const { return !is_done() && front().action == MessageAction::exchange; }
};

class Meetings {
 public:
  Meetings(const std::vector<MessageProgram>& programs, Findings& findings) : findings_(findings) {
    met_.pass = programs.empty() ? Pass::forward : programs.front().pass;
    for (const MessageProgram& program : programs) {
      met_.ranks.push_back(program.room);
      walkers_.push_back({.program = &program});
      enter(walkers_.back());
    }
  }

  StreamProgram run() {
    bool advanced = true;
    while (advanced) {
      advanced = false;
      for (Walker& walker : walkers_) advanced = advance(walker) || advanced;
    }
    for (const Walker& walker : walkers_) {
      if (!walker.is_done()) report(walker);
    }
    return std::move(met_);
  }

 private:
  void enter(Walker& walker) {
    walker.left.clear();
    if (walker.is_in_exchange()) walker.left = walker.front().ends;
  }

  /// Whether anything happened.
  bool advance(Walker& walker) {
    if (walker.is_done()) return false;
    if (walker.is_in_exchange()) {
      const bool met = meet_one(walker);
      if (!walker.left.empty()) return met;
    } else {
      compute(walker);
    }
    ++walker.at;
    enter(walker);
    return true;
  }

  /// The first message that finds its other end.
  bool meet_one(Walker& walker) {
    for (auto mine = walker.left.begin(); mine != walker.left.end(); ++mine) {
      if (!is_first(walker.left, mine)) continue;
      Walker& peer = walkers_[static_cast<std::size_t>(mine->peer)];
      if (!peer.is_in_exchange() || peer.front().stream != walker.front().stream) continue;
      const auto theirs = std::ranges::find_if(peer.left, [&](const MessageEnd& end) {
        return end.peer == walker.program->rank && end.side == other(mine->side);
      });
      if (theirs == peer.left.end()) continue;
      const bool sends = mine->side == MessageSide::send;
      pass_on(sends ? walker : peer, sends ? *mine : *theirs, sends ? peer : walker,
              sends ? *theirs : *mine);
      walker.left.erase(mine);
      peer.left.erase(theirs);
      return true;
    }
    return false;
  }

  /// Messages between two ranks come in order.
  static bool is_first(const std::vector<MessageEnd>& left,
                       std::vector<MessageEnd>::const_iterator end) {
    return std::none_of(left.begin(), end, [&](const MessageEnd& earlier) {
      return earlier.peer == end->peer && earlier.side == end->side;
    });
  }

  void pass_on(const Walker& from, const MessageEnd& send, const Walker& to,
               const MessageEnd& receive) {
    const MessageOperation& exchange = to.front();
    const auto find = [&](const std::string& what) {
      findings_.push_back(place(to.program->rank, exchange) + ": " + what + " rank " +
                          std::to_string(from.program->rank) + " sends " +
                          std::to_string(send.owner) + " in round " +
                          std::to_string(from.front().step));
    };
    if (send.owner != receive.owner) find("other sizes:");
    if (from.front().step != exchange.step) find("other rounds:");
    met_.operations.push_back({.action = StreamAction::copy,
                               .rank = to.program->rank,
                               .stream = exchange.stream,
                               .step = exchange.step,
                               .owner = receive.owner,
                               .payload = payload_of(exchange),
                               .from = {from.program->rank, send.slot},
                               .to = {to.program->rank, receive.slot}});
  }

  void compute(const Walker& walker) {
    const MessageOperation& o = walker.front();
    if (o.action == MessageAction::record || o.action == MessageAction::wait) return;
    met_.operations.push_back({.action = o.action == MessageAction::attend
                                             ? StreamAction::attend
                                             : StreamAction::add_gradient,
                               .rank = walker.program->rank,
                               .step = o.step,
                               .owner = o.owner,
                               .slot = o.slot,
                               .gradient = o.gradient,
                               .addend = o.addend});
  }

  void report(const Walker& walker) {
    for (const MessageEnd& end : walker.left) {
      findings_.push_back(place(walker.program->rank, walker.front()) +
                          ": waits for ever for rank " + std::to_string(end.peer));
    }
  }

  Findings& findings_;
  std::vector<Walker> walkers_;
  StreamProgram met_;
};

}  // namespace

StreamProgram meet(const std::vector<MessageProgram>& programs, Findings& findings) {
  return Meetings(programs, findings).run();
}

}  // namespace ringlab::ring::message_laws
