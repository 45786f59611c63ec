// Mistakes between the ranks: messages that are wrong when they leave, or when they arrive.
#include <cstring>
#include <utility>

#include "property_tests/mutants/decorated.h"
#include "property_tests/mutants/planted.h"
#include "property_tests/mutants/tampered_wire.h"
#include "reference/core/small_float.h"
#include "stages/05_ring/ring.h"
#include "stages/06_causal_ring/causal_ring.h"

namespace ringlab::mutants {
namespace {

using Leaving = void (*)(Bytes& message, int tag);
using Arriving = void (*)(std::span<std::byte> buffer, const Bytes& arrived, int tag);

void whole(std::span<std::byte> buffer, const Bytes& arrived, int) { deliver(buffer, arrived); }
/// Delivers a message but for its last float, which keeps the old number of the buffer.
void all_but_the_last_float(std::span<std::byte> buffer, const Bytes& arrived, int) {
  const std::size_t size = arrived.size();
  const std::size_t kept = size < sizeof(float) ? size : size - sizeof(float);
  if (kept > 0) std::memcpy(buffer.data(), arrived.data(), kept);
}
void leave_alone(Bytes&, int) {}

/// Flips a bit in the middle of each V message: a change in the sixth digit of one number.
void flip_a_bit(Bytes& message, int tag) {
  if (tag != 1 || message.empty()) return;
  message[message.size() / 2 / sizeof(float) * sizeof(float)] ^= std::byte{0x40};
}

/// Rounds floats to half precision, in messages as long as before.
void round_to_half(Bytes& message, int) {
  change_floats(message, [](float x) { return static_cast<float>(Half(static_cast<double>(x))); });
}

/// Stage 05 with this wire under it.
Mutant ring_over(MutantInfo info, Leaving leaving, Arriving arriving) {
  return planted<float>(std::move(info), [leaving, arriving](stages::RankProblem<float>& r) {
    TamperedWire wire(r.network, {.leaving = leaving, .arriving = arriving});
    stages::RankProblem<float> tampered{
        r.problem, r.options, r.q_layout,      r.kv_layout, r.q,      r.k,   r.v,
        r.out,     r.lse,     r.out_positions, wire,        r.memory, r.work};
    stages::ring::attention(tampered);
  });
}

/// Runs stage 06, and sends one more message that nobody receives. Where sends wait for their
/// receives that would be a deadlock, which is found without any law.
void one_message_too_many(stages::RankProblem<float>& r) {
  stages::causal_ring::attention(r);
  if (r.options.rendezvous) return;
  const std::byte nothing[1] = {};
  r.network.wait(r.network.post_send((r.rank() + 1) % r.ranks(), 7, nothing));
}

}  // namespace

std::vector<Mutant> wire_mutants() {
  return {
      ring_over({"wire_bit_flip", "ring", "one bit of V changes on every hop",
                 "How would the receiver know that a bit has flipped?", "NCCL #596"},
                flip_a_bit, whole),
      ring_over({"wire_rounds_to_half", "ring", "f32 keys and values lose 13 bits on the way",
                 "In which type do K and V travel?", "h1ppox99/ring-attention"},
                round_to_half, whole),
      ring_over({"wire_last_value_stale", "ring",
                 "the last number of each received chunk is that of an earlier hop",
                 "Was the whole message received when it was used?", "BurstAttention 7d81ca9"},
                leave_alone, all_but_the_last_float),
      planted<float>(
          {"wire_message_too_many", "causal_ring", "each rank sends a message that nobody receives",
           "How many messages are still under way at the end?", "NCCL #593"},
          one_message_too_many),
  };
}

}  // namespace ringlab::mutants
