#include "property_tests/diagnosis/law_suspects.h"

#include <algorithm>
#include <utility>

namespace ringlab::verify {
namespace {

constexpr const char* kMissingBarrier =
    "threads of a block read what others of them have yet to write: a barrier is missing";

using Row = std::pair<const char*, Suspect>;

const std::vector<Row>& law_table() {
  static const std::vector<Row> rows = {
      {"P38", {"memory.strides_ignored", "strided inputs are not read where they lie"}},
      {"P39", {"memory.inputs_written", "the inputs, or what lies beside them, are written to"}},
      {"P57", {"memory.previous_gradients", "gradients hold something of the run before"}},
      {"P67",
       {"ring.visits",
        "of the chunks computed on, as they are noted, one is missing, there twice, or out of "
        "sight"}},
      {"P68",
       {"ring.messages",
        "messages are sent that nobody receives, received that nobody sends, or others than are "
        "needed: more, further, or one after the other"}},
      {"P70", {"kernel.order_of_threads", kMissingBarrier}},
      {"P70-gradients", {"kernel.order_of_threads", kMissingBarrier}},
      {"P71", {"memory.read_before_written", "memory of an earlier call shows in the answer"}},
      {"P72",
       {"ring.memory", "more chunks are held than the slots need, or it is not noted how many"}},
      {"P79",
       {"values.largest_lost",
        "numbers next to the largest of their type become infinity or NaN where the answer is "
        "finite"}},
      {"infinite_value",
       {"values.infinity_misplaced",
        "an infinite value does not show where it is seen, or shows where it is hidden"}},
      {"same_call",
       {"memory.depends_on_earlier_calls", "something of earlier calls is kept and used again"}},
      {"same_addresses", {"memory.cached_by_address", "answers are cached by address"}},
      {"same_addresses_middle", {"memory.cached_by_address", "answers are cached by address"}},
  };
  return rows;
}

}  // namespace

std::optional<Suspect> suspect_of_law(const Law& law, const Subject& subject) {
  const auto& rows = law_table();
  const auto found = std::ranges::find(rows, law.id, [](const Row& row) { return row.first; });
  if (found == rows.end()) return std::nullopt;
  const std::string& id = found->second.id;
  if (subject.can.has(Ability::foreign) && (id.starts_with("ring.") || id.starts_with("kernel."))) {
    return std::nullopt;
  }
  return found->second;
}

std::string seen_in_law(const Law& law) {
  if (law.id != "P65" && law.id != "P65-gradients") return "";
  return "the answer depends on when messages arrive; what the ranks asked of their network does "
         "not "
         "say why";
}

Suspect send_before_receive() {
  return {"ring.send_before_receive",
          "ranks wait for their sends before they receive: a deadlock unless the network buffers"};
}

std::vector<Suspect> masked_nan_suspects() {
  return {
      {"mask.masked_value_read",
       "a masked value is multiplied by its weight of 0 and added: where it is NaN or infinite, "
       "so is the row"},
      {"mask.masked_key_read",
       "the score of a masked key is computed and then lowered: where the key is NaN, so is the "
       "row"}};
}

std::vector<Suspect> law_suspects() {
  std::vector<Suspect> suspects;
  for (const auto& [id, suspect] : law_table()) suspects.push_back(suspect);
  suspects.push_back(send_before_receive());
  for (const Suspect& suspect : masked_nan_suspects()) suspects.push_back(suspect);
  return suspects;
}

}  // namespace ringlab::verify
