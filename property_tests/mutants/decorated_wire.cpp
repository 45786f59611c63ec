// Mistakes between the ranks: what is sent is not what was meant, or not what arrives.
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "property_tests/mutants/decorated.h"
#include "property_tests/mutants/planted.h"
#include "stages/05_ring/ring.h"
#include "stages/06_causal_ring/causal_ring.h"

namespace ringlab::mutants {
namespace {

using Bytes = std::vector<std::byte>;

/// Passes everything on, after `alter` has had a copy of each message that leaves, and `keep` has
/// said how many bytes of each message that arrives are copied out.
class TamperedWire : public Communicator {
 public:
  using Alter = void (*)(Bytes& message, int tag);
  using Keep = std::size_t (*)(std::size_t size);

  TamperedWire(Communicator& below, Alter alter, Keep keep)
      : below_(below), alter_(alter), keep_(keep) {}

  int rank() const override { return below_.rank(); }
  int ranks() const override { return below_.ranks(); }
  const Traffic& traffic() const override { return below_.traffic(); }

  Request post_send(int to, int tag, std::span<const std::byte> bytes) override {
    auto copy = std::make_unique<Bytes>(bytes.begin(), bytes.end());
    alter_(*copy, tag);
    sent_.push_back(std::move(copy));
    return below_.post_send(to, tag, *sent_.back());
  }

  Request post_receive(int from, int tag, std::span<std::byte> buffer) override {
    auto copy = std::make_unique<Bytes>(buffer.size());
    const Request request = below_.post_receive(from, tag, *copy);
    received_[request.id] = {std::move(copy), buffer};
    return request;
  }

  void wait(Request request) override {
    below_.wait(request);
    const auto found = received_.find(request.id);
    if (found == received_.end()) return;
    const auto& [copy, buffer] = found->second;
    const std::size_t kept = keep_(copy->size());
    if (kept > 0) std::memcpy(buffer.data(), copy->data(), kept);
    received_.erase(found);
  }

 private:
  Communicator& below_;
  Alter alter_;
  Keep keep_;
  std::vector<std::unique_ptr<Bytes>> sent_;
  std::map<std::int64_t, std::pair<std::unique_ptr<Bytes>, std::span<std::byte>>> received_;
};

std::size_t all_of_it(std::size_t size) { return size; }
std::size_t all_but_the_last_float(std::size_t size) {
  return size < sizeof(float) ? size : size - sizeof(float);
}
void leave_alone(Bytes&, int) {}

/// One bit in the middle of each V message: a change in the sixth digit of one number.
void flip_a_bit(Bytes& message, int tag) {
  if (tag != 1 || message.empty()) return;
  message[message.size() / 2 / sizeof(float) * sizeof(float)] ^= std::byte{0x40};
}

/// Floats rounded to half precision, in messages as long as before.
void round_to_half(Bytes& message, int) {
  for (std::size_t at = 0; at + sizeof(float) <= message.size(); at += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, &message[at], sizeof value);
    value = static_cast<float>(Half(static_cast<double>(value)));
    std::memcpy(&message[at], &value, sizeof value);
  }
}

/// Stage 05 with this wire under it.
Mutant ring_over(MutantInfo info, TamperedWire::Alter alter, TamperedWire::Keep keep) {
  return planted<float>(std::move(info), [alter, keep](stages::RankProblem<float>& r) {
    TamperedWire wire(r.network, alter, keep);
    stages::RankProblem<float> tampered{r.problem, r.options, r.q_layout, r.kv_layout,
                                        r.q,       r.k,       r.v,        r.out,
                                        r.lse,     wire,      r.memory,   r.work};
    stages::ring::attention(tampered);
  });
}

/// Stage 06, and then one more message that nobody receives. Where sends wait for their receives
/// that would be a deadlock, which is found without any law.
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
                flip_a_bit, all_of_it),
      ring_over({"wire_rounds_to_half", "ring", "f32 keys and values lose 13 bits on the way",
                 "In which type do K and V travel?", "h1ppox99/ring-attention"},
                round_to_half, all_of_it),
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
