#include "tests/property_tests/programs/stream_mistakes.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

namespace ringlab::ring {
namespace {

using Programs = std::vector<StreamProgram>;
using StreamOperations = std::vector<StreamOperation>;

bool is(const StreamOperation& operation, StreamAction action) {
  return operation.action == action;
}
void erase_at(StreamOperations& operations, std::size_t at) {
  operations.erase(operations.begin() + static_cast<std::ptrdiff_t>(at));
}
/// What stands at `from` comes to stand just behind what stands at `to`.
void move_behind(StreamOperations& operations, std::size_t from, std::size_t to) {
  const auto begin = operations.begin();
  std::rotate(begin + static_cast<std::ptrdiff_t>(from),
              begin + static_cast<std::ptrdiff_t>(from) + 1,
              begin + static_cast<std::ptrdiff_t>(to) + 1);
}

/// The operation after which an event is recorded.
const StreamOperation& cause_of(const StreamProgram& program, int event) {
  const auto record = std::ranges::find_if(program.operations, [&](const StreamOperation& o) {
    return is(o, StreamAction::record) && o.event == event;
  });
  return *(record - 1);
}
/// The operation that the wait at `at` stands before.
std::size_t user_of(const StreamProgram& program, std::size_t at) {
  while (is(program.operations[at], StreamAction::wait)) ++at;
  return at;
}

/// One program for every operation at which `edit` says that it changed something.
template <class Edit>
Programs at_every_place(const StreamProgram& program, Edit edit) {
  Programs planted;
  for (std::size_t at = 0; at < program.operations.size(); ++at) {
    StreamProgram changed = program;
    if (edit(changed, at)) planted.push_back(std::move(changed));
  }
  return planted;
}

/// Without the waits for whom `concerns(user, cause)` says so, for every user that has some.
template <class Concerns>
Programs stream_without_waits(const StreamProgram& program, Concerns concerns) {
  return at_every_place(program, [&](StreamProgram& changed, std::size_t at) {
    const StreamOperation user = changed.operations[at];
    if (!touches_slots(user)) return false;
    bool found = false;
    while (at > 0 && is(changed.operations[at - 1], StreamAction::wait)) {
      --at;
      if (!concerns(user, cause_of(program, changed.operations[at].event))) continue;
      erase_at(changed.operations, at);
      found = true;
    }
    return found;
  });
}

Programs stream_recorded_on_another_stream(const StreamProgram& program) {
  return at_every_place(program, [](StreamProgram& changed, std::size_t at) {
    StreamOperation& record = changed.operations[at];
    if (!is(record, StreamAction::record)) return false;
    record.stream = record.stream == StreamKind::compute ? StreamKind::chunks : StreamKind::compute;
    return true;
  });
}

Programs stream_recorded_too_early(const StreamProgram& program) {
  return at_every_place(program, [](StreamProgram& changed, std::size_t at) {
    if (!is(changed.operations[at], StreamAction::record)) return false;
    std::swap(changed.operations[at], changed.operations[at - 1]);
    return true;
  });
}

Programs stream_recorded_after_the_wait_was_issued(const StreamProgram& program) {
  return at_every_place(program, [](StreamProgram& changed, std::size_t at) {
    if (!is(changed.operations[at], StreamAction::record)) return false;
    move_behind(changed.operations, at, changed.operations.size() - 1);
    return true;
  });
}

Programs stream_missing_wait(const StreamProgram& program) {
  return at_every_place(program, [](StreamProgram& changed, std::size_t at) {
    if (!is(changed.operations[at], StreamAction::wait)) return false;
    erase_at(changed.operations, at);
    return true;
  });
}

Programs wait_after_the_use(const StreamProgram& program) {
  return at_every_place(program, [](StreamProgram& changed, std::size_t at) {
    if (!is(changed.operations[at], StreamAction::wait)) return false;
    move_behind(changed.operations, at, user_of(changed, at));
    return true;
  });
}

Programs wait_on_another_stream(const StreamProgram& program) {
  return at_every_place(program, [](StreamProgram& changed, std::size_t at) {
    StreamOperation& wait = changed.operations[at];
    if (!is(wait, StreamAction::wait)) return false;
    wait.stream = wait.stream == StreamKind::chunks ? StreamKind::sums : StreamKind::chunks;
    return true;
  });
}

/// The event that the same stream recorded before the right one.
Programs wait_for_the_event_of_before(const StreamProgram& program) {
  return at_every_place(program, [&](StreamProgram& changed, std::size_t at) {
    StreamOperation& wait = changed.operations[at];
    if (!is(wait, StreamAction::wait)) return false;
    const int stream = stream_number(cause_of(program, wait.event));
    int event = kNoEvent;
    for (const StreamOperation& o : program.operations) {
      if (!is(o, StreamAction::record) || stream_number(o) != stream) continue;
      if (o.event == wait.event) break;
      event = o.event;
    }
    wait.event = event;
    return event != kNoEvent;
  });
}

bool reads(const StreamOperation& operation, Payload payload, SlotPlace place) {
  if (is(operation, StreamAction::copy))
    return operation.payload == payload && operation.from == place;
  if (operation.rank != place.rank) return false;
  return payload == Payload::chunk
             ? is(operation, StreamAction::attend) && operation.slot == place.slot
             : is(operation, StreamAction::add_gradient) && operation.addend == place.slot;
}

Programs slot_filled_while_read(const StreamProgram& program, Payload payload) {
  return stream_without_waits(program,
                              [&](const StreamOperation& user, const StreamOperation& cause) {
                                return is(user, StreamAction::copy) && user.payload == payload &&
                                       reads(cause, payload, user.to);
                              });
}

Programs stream_sum_begun_anew_while_sent(const StreamProgram& program) {
  return stream_without_waits(
      program, [](const StreamOperation& user, const StreamOperation& cause) {
        return is(user, StreamAction::attend) && is(cause, StreamAction::copy) &&
               reads(cause, Payload::gradients, {user.rank, user.gradient});
      });
}

Programs sent_before_it_is_there(const StreamProgram& program, Payload payload) {
  return stream_without_waits(
      program, [&](const StreamOperation& user, const StreamOperation& cause) {
        if (!is(user, StreamAction::copy) || user.payload != payload) return false;
        return is(cause, StreamAction::copy) ? cause.to == user.from && cause.payload == payload
                                             : cause.rank == user.from.rank;
      });
}

/// Another slot of the same rank; the own chunk where there is none.
int stream_other_slot(int slot, int slots) { return slot + 1 < slots ? slot + 1 : kHome; }

Programs copied_from_another_slot(const StreamProgram& program) {
  return at_every_place(program, [](StreamProgram& changed, std::size_t at) {
    StreamOperation& copy = changed.operations[at];
    if (!is(copy, StreamAction::copy)) return false;
    const StreamRoom& room = changed.ranks[static_cast<std::size_t>(copy.from.rank)];
    const int was = copy.from.slot;
    copy.from.slot =
        stream_other_slot(was, copy.payload == Payload::chunk ? room.slots : room.gradient_slots);
    return copy.from.slot != was;
  });
}

Programs attended_in_another_slot(const StreamProgram& program) {
  return at_every_place(program, [](StreamProgram& changed, std::size_t at) {
    StreamOperation& attend = changed.operations[at];
    if (!is(attend, StreamAction::attend)) return false;
    const int was = attend.slot;
    attend.slot =
        stream_other_slot(was, changed.ranks[static_cast<std::size_t>(attend.rank)].slots);
    return attend.slot != was;
  });
}

/// Every copy of K and V waits for what its rank was last given to compute.
Programs copies_that_wait_for_computing(const StreamProgram& program) {
  StreamProgram slow = program;
  slow.operations.clear();
  std::map<int, int> computed;  // events of ranks
  for (const StreamOperation& operation : program.operations) {
    const auto last = computed.find(operation.to.rank);
    if (is(operation, StreamAction::copy) && operation.payload == Payload::chunk &&
        last != computed.end()) {
      StreamOperation wait = operation;
      wait.action = StreamAction::wait;
      wait.event = last->second;
      slow.operations.push_back(wait);
    }
    slow.operations.push_back(operation);
    if (!is(operation, StreamAction::attend)) continue;
    StreamOperation record = operation;
    record.action = StreamAction::record;
    record.event = computed[operation.rank] = slow.events++;
    slow.operations.push_back(record);
  }
  return {slow};
}

}  // namespace

const std::vector<StreamMistake>& stream_mistakes() {
  static const std::vector<StreamMistake> mistakes = {
      {"event_recorded_on_another_stream", stream_recorded_on_another_stream},
      {"event_recorded_too_early", stream_recorded_too_early},
      {"event_recorded_after_the_wait_was_issued", stream_recorded_after_the_wait_was_issued},
      {"missing_wait", stream_missing_wait},
      {"wait_after_the_use", wait_after_the_use},
      {"wait_on_another_stream", wait_on_another_stream},
      {"wait_for_the_event_of_before", wait_for_the_event_of_before},
      {"slot_filled_while_read",
       [](const StreamProgram& program) {
         return slot_filled_while_read(program, Payload::chunk);
       }},
      {"gradient_slot_filled_while_read",
       [](const StreamProgram& program) {
         return slot_filled_while_read(program, Payload::gradients);
       }},
      {"sum_begun_anew_while_sent", stream_sum_begun_anew_while_sent},
      {"chunk_sent_before_it_is_there",
       [](const StreamProgram& program) {
         return sent_before_it_is_there(program, Payload::chunk);
       }},
      {"sum_sent_before_it_is_computed",
       [](const StreamProgram& program) {
         return sent_before_it_is_there(program, Payload::gradients);
       }},
      {"copied_from_another_slot", copied_from_another_slot},
      {"attended_in_another_slot", attended_in_another_slot},
      {"copies_that_wait_for_computing", copies_that_wait_for_computing, false},
  };
  return mistakes;
}

std::vector<StreamMistake> result_mistakes() {
  std::vector<StreamMistake> mistakes;
  std::ranges::copy_if(stream_mistakes(), std::back_inserter(mistakes),
                       &StreamMistake::changes_results);
  return mistakes;
}

}  // namespace ringlab::ring
