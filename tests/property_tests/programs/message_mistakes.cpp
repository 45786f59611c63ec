#include "tests/property_tests/programs/message_mistakes.h"

#include <algorithm>
#include <utility>

namespace ringlab::ring {
namespace {

using Planted = std::vector<RankPrograms>;
using Operations = std::vector<MessageOperation>;

bool is(const MessageOperation& operation, MessageAction action) {
  return operation.action == action;
}
bool is_exchange(const MessageOperation& operation) {
  return is(operation, MessageAction::exchange);
}
void erase(Operations& operations, std::size_t at) {
  operations.erase(operations.begin() + static_cast<std::ptrdiff_t>(at));
}
void insert(Operations& operations, std::size_t at, const MessageOperation& operation) {
  operations.insert(operations.begin() + static_cast<std::ptrdiff_t>(at), operation);
}

/// One set of programs for every operation of every rank at which `edit` says that it changed
/// something.
template <class Edit>
Planted at_every_place(const RankPrograms& programs, Edit edit) {
  Planted planted;
  for (std::size_t rank = 0; rank < programs.size(); ++rank) {
    for (std::size_t at = 0; at < programs[rank].operations.size(); ++at) {
      RankPrograms changed = programs;
      if (edit(changed[rank], at)) planted.push_back(std::move(changed));
    }
  }
  return planted;
}
/// The same for every end of every exchange.
template <class Edit>
Planted at_every_end(const RankPrograms& programs, Edit edit) {
  Planted planted;
  for (std::size_t rank = 0; rank < programs.size(); ++rank) {
    for (std::size_t at = 0; at < programs[rank].operations.size(); ++at) {
      for (std::size_t i = 0; i < programs[rank].operations[at].ends.size(); ++i) {
        RankPrograms changed = programs;
        if (edit(changed[rank], changed[rank].operations[at], i)) {
          planted.push_back(std::move(changed));
        }
      }
    }
  }
  return planted;
}

/// The operation after which an event is recorded.
const MessageOperation& cause_of(const MessageProgram& program, int event) {
  const auto record = std::ranges::find_if(program.operations, [&](const MessageOperation& o) {
    return is(o, MessageAction::record) && o.event == event;
  });
  return *(record - 1);
}

/// Without the waits for whom `concerns(user, cause)` says so, for every user that has some.
template <class Concerns>
Planted without_waits(const RankPrograms& programs, Concerns concerns) {
  return at_every_place(programs, [&](MessageProgram& changed, std::size_t at) {
    const MessageOperation user = changed.operations[at];
    if (is(user, MessageAction::wait) || is(user, MessageAction::record)) return false;
    bool found = false;
    while (at > 0 && is(changed.operations[at - 1], MessageAction::wait)) {
      --at;
      if (!concerns(user, cause_of(changed, changed.operations[at].event))) continue;
      erase(changed.operations, at);
      found = true;
    }
    return found;
  });
}

bool has(const MessageOperation& exchange, MessageSide side, int slot) {
  return std::ranges::any_of(
      exchange.ends, [&](const MessageEnd& end) { return end.side == side && end.slot == slot; });
}

Planted received_into_a_slot_that_is_attended_to(const RankPrograms& programs) {
  return without_waits(programs, [](const MessageOperation& user, const MessageOperation& cause) {
    return is_exchange(user) && user.stream == StreamKind::chunks &&
           is(cause, MessageAction::attend) && has(user, MessageSide::receive, cause.slot);
  });
}
Planted received_into_a_sum_that_is_added(const RankPrograms& programs) {
  return without_waits(programs, [](const MessageOperation& user, const MessageOperation& cause) {
    return is_exchange(user) && is(cause, MessageAction::add_gradient) &&
           has(user, MessageSide::receive, cause.addend);
  });
}
Planted sum_sent_before_it_is_computed(const RankPrograms& programs) {
  return without_waits(programs, [](const MessageOperation& user, const MessageOperation& cause) {
    return is_exchange(user) && user.stream == StreamKind::sums && !is_exchange(cause) &&
           has(user, MessageSide::send, cause.gradient);
  });
}
Planted sum_begun_anew_while_sent(const RankPrograms& programs) {
  return without_waits(programs, [](const MessageOperation& user, const MessageOperation& cause) {
    return is(user, MessageAction::attend) && is_exchange(cause) &&
           cause.stream == StreamKind::sums && has(cause, MessageSide::send, user.gradient);
  });
}
Planted computed_before_it_is_there(const RankPrograms& programs) {
  return without_waits(programs, [](const MessageOperation& user, const MessageOperation& cause) {
    if (!is_exchange(cause)) return false;
    if (is(user, MessageAction::add_gradient)) return has(cause, MessageSide::receive, user.addend);
    return is(user, MessageAction::attend) && cause.stream == StreamKind::chunks;
  });
}

Planted missing_wait(const RankPrograms& programs) {
  return at_every_place(programs, [](MessageProgram& changed, std::size_t at) {
    if (!is(changed.operations[at], MessageAction::wait)) return false;
    erase(changed.operations, at);
    return true;
  });
}
Planted recorded_too_early(const RankPrograms& programs) {
  return at_every_place(programs, [](MessageProgram& changed, std::size_t at) {
    if (!is(changed.operations[at], MessageAction::record)) return false;
    std::swap(changed.operations[at], changed.operations[at - 1]);
    return true;
  });
}
Planted recorded_on_another_stream(const RankPrograms& programs) {
  return at_every_place(programs, [](MessageProgram& changed, std::size_t at) {
    MessageOperation& record = changed.operations[at];
    if (!is(record, MessageAction::record)) return false;
    record.stream = record.stream == StreamKind::compute ? StreamKind::chunks : StreamKind::compute;
    return true;
  });
}
Planted recorded_after_the_wait_was_issued(const RankPrograms& programs) {
  return at_every_place(programs, [](MessageProgram& changed, std::size_t at) {
    const MessageOperation record = changed.operations[at];
    if (!is(record, MessageAction::record)) return false;
    erase(changed.operations, at);
    changed.operations.push_back(record);
    return true;
  });
}

/// The next exchange on the stream of `at`; the end when there is none.
std::size_t next_exchange(const Operations& operations, std::size_t at) {
  std::size_t next = at + 1;
  while (next < operations.size() &&
         !(is_exchange(operations[next]) && operations[next].stream == operations[at].stream)) {
    ++next;
  }
  return next;
}

Planted groups_in_another_order_on_one_rank(const RankPrograms& programs) {
  return at_every_place(programs, [](MessageProgram& changed, std::size_t at) {
    Operations& operations = changed.operations;
    if (!is_exchange(operations[at])) return false;
    const std::size_t next = next_exchange(operations, at);
    if (next == operations.size()) return false;
    std::swap(operations[at].ends, operations[next].ends);
    std::swap(operations[at].step, operations[next].step);
    return true;
  });
}

/// All ranks send in what they receive, or have received, in the group before.
Planted two_rounds_in_one_group(const RankPrograms& programs) {
  RankPrograms changed = programs;
  for (MessageProgram& program : changed) {
    Operations& operations = program.operations;
    const auto first = std::ranges::find_if(operations, is_exchange);
    if (first == operations.end()) continue;
    const std::size_t next =
        next_exchange(operations, static_cast<std::size_t>(first - operations.begin()));
    if (next == operations.size()) continue;
    std::ranges::copy(operations[next].ends, std::back_inserter(first->ends));
    operations[next].ends.clear();
  }
  return {changed};
}

/// All ranks send, and only then receive.
Planted send_and_receive_in_separate_groups(const RankPrograms& programs) {
  RankPrograms changed = programs;
  for (MessageProgram& program : changed) {
    for (std::size_t at = 0; at < program.operations.size(); ++at) {
      MessageOperation receives = program.operations[at];
      if (!is_exchange(receives) || receives.stream != StreamKind::chunks) continue;
      std::erase_if(receives.ends, [](const MessageEnd& e) { return e.side == MessageSide::send; });
      std::erase_if(program.operations[at].ends,
                    [](const MessageEnd& e) { return e.side == MessageSide::receive; });
      insert(program.operations, ++at, receives);
    }
  }
  return {changed};
}

/// Chunks behind the sums of the same round, on one rank.
Planted communicators_in_another_order_on_one_rank(const RankPrograms& programs) {
  return at_every_place(programs, [](MessageProgram& changed, std::size_t at) {
    Operations& operations = changed.operations;
    const MessageOperation chunks = operations[at];
    if (!is_exchange(chunks) || chunks.stream != StreamKind::chunks) return false;
    std::size_t next = at + 1;
    while (next < operations.size() && !is_exchange(operations[next])) ++next;
    if (next == operations.size() || operations[next].stream != StreamKind::sums ||
        operations[next].step != chunks.step) {
      return false;
    }
    std::size_t last = at + 1;  // with its record
    while (is(operations[last], MessageAction::record)) ++last;
    std::rotate(operations.begin() + static_cast<std::ptrdiff_t>(at),
                operations.begin() + static_cast<std::ptrdiff_t>(last),
                operations.begin() + static_cast<std::ptrdiff_t>(next) + 1);
    return true;
  });
}

Planted wrong_peer(const RankPrograms& programs) {
  return at_every_end(programs,
                      [&](MessageProgram& program, MessageOperation& exchange, std::size_t at) {
                        const auto ranks = static_cast<int>(programs.size());
                        int& peer = exchange.ends[at].peer;
                        const int was = peer;
                        peer = (peer + 1) % ranks;
                        if (peer == program.rank) peer = (peer + 1) % ranks;
                        return peer != was;
                      });
}
Planted end_left_out(const RankPrograms& programs) {
  return at_every_end(programs, [](MessageProgram&, MessageOperation& exchange, std::size_t at) {
    exchange.ends.erase(exchange.ends.begin() + static_cast<std::ptrdiff_t>(at));
    return true;
  });
}
Planted end_done_twice(const RankPrograms& programs) {
  return at_every_end(programs, [](MessageProgram&, MessageOperation& exchange, std::size_t at) {
    const MessageEnd end = exchange.ends[at];
    exchange.ends.push_back(end);
    return true;
  });
}
Planted other_size(const RankPrograms& programs) {
  return at_every_end(programs, [&](MessageProgram&, MessageOperation& exchange, std::size_t at) {
    int& owner = exchange.ends[at].owner;
    owner = (owner + 1) % static_cast<int>(programs.size());
    return true;
  });
}
/// Another slot of the same rank.
Planted other_slot(const RankPrograms& programs, MessageSide side) {
  return at_every_end(
      programs, [&](MessageProgram& program, MessageOperation& exchange, std::size_t at) {
        const bool chunks = exchange.stream == StreamKind::chunks;
        const int slots = chunks ? program.room.slots : program.room.gradient_slots;
        MessageEnd& end = exchange.ends[at];
        const int was = end.slot;
        end.slot = was + 1 < slots ? was + 1 : (side == MessageSide::send ? kHome : 0);
        return end.side == side && end.slot != was;
      });
}

}  // namespace

const std::vector<MessageMistake>& message_mistakes() {
  static const std::vector<MessageMistake> mistakes = {
      {"received_into_a_slot_that_is_attended_to", received_into_a_slot_that_is_attended_to},
      {"received_into_a_sum_that_is_added", received_into_a_sum_that_is_added},
      {"sum_sent_before_it_is_computed", sum_sent_before_it_is_computed},
      {"sum_begun_anew_while_sent", sum_begun_anew_while_sent},
      {"computed_before_it_is_there", computed_before_it_is_there},
      {"missing_wait", missing_wait},
      {"recorded_too_early", recorded_too_early},
      {"recorded_on_another_stream", recorded_on_another_stream},
      {"recorded_after_the_wait_was_issued", recorded_after_the_wait_was_issued},
      {"groups_in_another_order_on_one_rank", groups_in_another_order_on_one_rank, Shows::in_rings},
      {"two_rounds_in_one_group", two_rounds_in_one_group, Shows::in_rings, true},
      {"send_and_receive_in_separate_groups", send_and_receive_in_separate_groups},
      {"communicators_in_another_order_on_one_rank", communicators_in_another_order_on_one_rank,
       Shows::nowhere},
      {"wrong_peer", wrong_peer},
      {"end_left_out", end_left_out},
      {"end_done_twice", end_done_twice},
      {"other_size", other_size, Shows::nowhere},
      {"sent_from_another_slot",
       [](const RankPrograms& programs) { return other_slot(programs, MessageSide::send); }},
      {"received_into_another_slot",
       [](const RankPrograms& programs) { return other_slot(programs, MessageSide::receive); }},
  };
  return mistakes;
}

}  // namespace ringlab::ring
