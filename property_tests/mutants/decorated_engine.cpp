// Mistakes between the ranks of the real engine: its messages are tampered with, under its checks.
//
// Headers and checksums still fit the tampered messages, so that a wrong number comes out and not
// an error.
#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "optimized/ring/agreement.h"
#include "optimized/ring/closed_forms.h"
#include "optimized/ring/engine.h"
#include "optimized/ring/host/message.h"
#include "optimized/ring/host/wire.h"
#include "property_tests/mutants/decorated.h"
#include "property_tests/mutants/low_precision.h"
#include "property_tests/mutants/planted.h"
#include "property_tests/mutants/tampered_wire.h"

namespace ringlab::mutants {
namespace {

/// A message's tag, taken apart (Exchange::tag in optimized/ring/host/exchange.cpp).
struct TagMeaning {
  enum class TaggedPart { agreement, header, first, second };  ///< first: K or dK; second: V or dV
  TaggedPart part = TaggedPart::agreement;
  bool gradient = false;
  Pass pass = Pass::forward;
  int header_tag = 0;

  explicit TagMeaning(int tag) {
    const int at = tag - ring::kAgreementTags;
    if (at < 0) return;
    part = static_cast<TaggedPart>(at % 3 + 1);
    gradient = at / 3 % 2 == 1;
    pass = at / 6 % 2 == 1 ? Pass::backward : Pass::forward;
    header_tag = tag - at % 3;
  }
  bool is_tensor() const { return part == TaggedPart::first || part == TaggedPart::second; }
  bool is_chunk() const { return is_tensor() && !gradient; }
  bool is_gradient() const { return is_tensor() && gradient; }
};

using Wrap = std::function<std::unique_ptr<Communicator>(Communicator&, const Problem&)>;
using Choose = void (*)(RunOptions&);

void as_chosen(RunOptions&) {}
void over_fp8(RunOptions& options) { options.wire = WireFormat::fp8; }
void with_checksums(RunOptions& options) { options.integrity = Integrity::full; }

Mutant engine_over(MutantInfo info, Choose choose, Wrap wrap) {
  verify::Subject subject = subject_like(info, {DType::f32});
  subject.run = [choose, wrap = std::move(wrap)](const AttentionInput& input,
                                                 const RunOptions& options) {
    RunOptions chosen = options;
    chosen.timeout_s = std::min(options.timeout_s, kMutantTimeout);
    choose(chosen);
    ring::EngineParts parts;
    parts.wrap = [&](Communicator& below) { return wrap(below, input.problem); };
    return ring::Engine(parts).run(input, chosen);
  };
  subject.profile = [choose](const Problem& problem, const RunOptions& options) {
    RunOptions chosen = options;
    choose(chosen);
    return ring::engine_profile(problem, chosen);
  };
  return {std::move(info), std::move(subject)};
}

/// Gives each rank a tampering, and its memory, of its own.
template <class MakeTampering>
Wrap tampered(MakeTampering make) {
  return [make](Communicator& below, const Problem&) {
    return std::make_unique<TamperedWire>(below, make());
  };
}

/// Changes the messages that `which` picks as they leave.
template <class Which, class Change>
Wrap changed_on_leaving(Which which, Change change) {
  return tampered([=] {
    return Tampering{.leaving = [=](Bytes& message, int tag) {
      if (which(TagMeaning(tag))) change_floats(message, change);
    }};
  });
}

float rounded_to_half(float x) { return static_cast<float>(Half(static_cast<double>(x))); }

bool in_chunk(const TagMeaning& message) { return message.is_chunk(); }
bool in_chunk_of_backward(const TagMeaning& message) {
  return message.is_chunk() && message.pass == Pass::backward;
}
bool in_gradient(const TagMeaning& message) { return message.is_gradient(); }

/// Gives each V the content of the V before it, if that is as long.
Tampering values_one_hop_late() {
  const auto before = std::make_shared<Bytes>();
  return {.arriving = [before](std::span<std::byte> buffer, const Bytes& arrived, int tag) {
    const TagMeaning message(tag);
    const bool late = message.is_chunk() && message.part == TagMeaning::TaggedPart::second;
    deliver(buffer, late && before->size() == arrived.size() ? *before : arrived);
    if (late) *before = arrived;
  }};
}

Tampering half_of_each_chunk() {
  return {.arriving = [](std::span<std::byte> buffer, const Bytes& arrived, int tag) {
    const std::size_t size = TagMeaning(tag).is_chunk() ? arrived.size() / 2 : arrived.size();
    if (size > 0) std::memcpy(buffer.data(), arrived.data(), size);
  }};
}

/// Flips the seventh mantissa bit of the float in the middle: less than a hundredth of it, so that
/// only a bound that knows the row can tell.
void flip_a_bit(std::span<std::byte> message) {
  if (message.size() < sizeof(float)) return;
  const std::size_t middle = message.size() / sizeof(float) / 2 * sizeof(float);
  message[middle + 2] ^= std::byte{0x01};
}

Tampering bit_flips() {
  return {.leaving = [](Bytes& message, int tag) {
    const TagMeaning what(tag);
    if (what.is_chunk() && what.part == TagMeaning::TaggedPart::first) flip_a_bit(message);
  }};
}

/// Flips a bit of every K that arrives, and then makes the checksum of it anew.
Tampering checksums_of_what_arrived(int ranks) {
  struct Seen {
    std::span<std::byte> header;
    std::uint64_t sum = 0;
  };
  const auto seen = std::make_shared<std::map<int, Seen>>();  // by header_tag
  return {.arriving = [seen, ranks](std::span<std::byte> buffer, const Bytes& arrived, int tag) {
    deliver(buffer, arrived);
    const TagMeaning message(tag);
    if (message.gradient || message.part == TagMeaning::TaggedPart::agreement) return;
    Seen& known = (*seen)[message.header_tag];
    if (message.part == TagMeaning::TaggedPart::header) known.header = buffer;
    if (message.part != TagMeaning::TaggedPart::first) return;
    flip_a_bit(buffer);
    ring::ReadHeader read = ring::read_header(known.header, ranks);
    read.header.first_sum = ring::checksum(buffer);
    ring::write_header(read.header, read.times, known.header);
  }};
}

/// Sends the sums that this rank sent before under the same name; zeros at first.
Tampering sums_of_the_hop_before() {
  const auto before = std::make_shared<std::map<TagMeaning::TaggedPart, Bytes>>();
  return {.leaving = [before](Bytes& message, int tag) {
    const TagMeaning what(tag);
    if (!what.is_gradient()) return;
    Bytes& buffer = (*before)[what.part];
    buffer.resize(message.size());
    std::swap(buffer, message);
  }};
}

/// Lets K leave as V and V as K, where they are equally long.
class KeysForValues : public TamperedWire {
 public:
  KeysForValues(Communicator& below, const Problem& problem)
      : TamperedWire(below, {}), equal_(problem.shape.head_dim == problem.shape.v_dim) {}
  Request post_send(int to, int tag, std::span<const std::byte> bytes) override {
    const TagMeaning message(tag);
    if (!equal_ || !message.is_chunk()) return TamperedWire::post_send(to, tag, bytes);
    const int other = message.part == TagMeaning::TaggedPart::first ? tag + 1 : tag - 1;
    return TamperedWire::post_send(to, other, bytes);
  }

 private:
  const bool equal_;
};

/// Posts every V twice, and waits for one of them.
class ValuesTwice : public TamperedWire {
 public:
  explicit ValuesTwice(Communicator& below) : TamperedWire(below, {}) {}
  Request post_send(int to, int tag, std::span<const std::byte> bytes) override {
    const TagMeaning message(tag);
    const Request request = TamperedWire::post_send(to, tag, bytes);
    if (message.is_chunk() && message.part == TagMeaning::TaggedPart::second) {
      TamperedWire::post_send(to, tag, bytes);
    }
    return request;
  }
};

/// Finds the scales in an fp8 message: one per row and block of channels.
template <class ChangeScales>
Wrap with_fp8_scales(ChangeScales change) {
  return [change](Communicator& below, const Problem& problem) {
    const Shape shape = problem.shape;
    const auto leaving = [change, shape](Bytes& message, int tag) {
      const TagMeaning what(tag);
      if (!what.is_chunk()) return;
      const auto channels = static_cast<std::size_t>(
          what.part == TagMeaning::TaggedPart::first ? shape.head_dim : shape.v_dim);
      const std::size_t blocks = (channels + ring::kWireBlock - 1) / ring::kWireBlock;
      if (blocks == 0) return;
      const std::size_t rows = message.size() / (channels + blocks * sizeof(float));
      change(std::span(message).first(rows * blocks * sizeof(float)));
    };
    return std::make_unique<TamperedWire>(below, Tampering{.leaving = leaving});
  };
}

void shift_by_one(std::span<std::byte> scales) {
  float before = 1;
  change_floats(scales, [&](float scale) { return std::exchange(before, scale); });
}
void replace_by_one(std::span<std::byte> scales) {
  change_floats(scales, [](float) { return 1.0f; });
}

std::vector<Mutant> of_chunks() {
  return {
      engine_over({"engine_ships_half", "optimized", "f32 keys and values travel as f16",
                   "Which type do K and V have on the wire?", "h1ppox99/ring-attention"},
                  as_chosen, changed_on_leaving(in_chunk, rounded_to_half)),
      engine_over({"engine_ships_half_backward", "optimized",
                   "f32 keys and values travel as f16 in the backward pass only",
                   "Which of the results do the chunks of the second round reach?",
                   "NVIDIA/TransformerEngine #1134"},
                  as_chosen, changed_on_leaving(in_chunk_of_backward, rounded_to_half)),
      engine_over({"engine_values_of_another_hop", "optimized",
                   "keys of one hop meet the values of the hop before",
                   "Do K and V of one hop come from the same owner?", "diffusers #14265"},
                  as_chosen, tampered(values_one_hop_late)),
      engine_over({"engine_keys_sent_as_values", "optimized", "K arrives as V and V as K",
                   "How does the receiver tell two messages of one hop apart?", "classic"},
                  as_chosen,
                  [](Communicator& below, const Problem& problem) {
                    return std::make_unique<KeysForValues>(below, problem);
                  }),
      engine_over({"engine_partial_read", "optimized",
                   "the second half of each tensor is what the slot held before",
                   "Was the whole message received when it was used?", "BurstAttention 7d81ca9"},
                  as_chosen, tampered(half_of_each_chunk)),
  };
}

std::vector<Mutant> of_integrity() {
  return {
      engine_over({"engine_bit_flip_unseen", "optimized",
                   "one bit of K changes on every hop, and only headers are checked",
                   "What does a checksum of the header say about the payload?", "NCCL #596"},
                  as_chosen, tampered(bit_flips)),
      engine_over({"engine_checksum_of_what_arrived", "optimized",
                   "damaged keys are compared with a checksum made after the damage",
                   "Who makes the checksum, and from which bytes?", "classic"},
                  with_checksums,
                  [](Communicator& below, const Problem&) {
                    return std::make_unique<TamperedWire>(below,
                                                          checksums_of_what_arrived(below.ranks()));
                  }),
      engine_over(
          {"engine_message_sent_twice", "optimized", "every V is sent again; nobody receives that",
           "What becomes of a retry when the first try had come through?", "NCCL #593"},
          as_chosen,
          [](Communicator& below, const Problem&) { return std::make_unique<ValuesTwice>(below); }),
  };
}

std::vector<Mutant> of_gradients() {
  return {
      engine_over({"engine_gradient_counted_twice", "optimized",
                   "each sum of dK, dV that arrives is twice what was sent",
                   "What does a repeated message do to a sum?", "classic"},
                  as_chosen, changed_on_leaving(in_gradient, [](float x) { return 2 * x; })),
      engine_over({"engine_gradient_of_the_hop_before", "optimized",
                   "dK, dV are sent before those of this step are in the buffer",
                   "What has to be finished before a sum may leave?", "Cornstarch #77"},
                  as_chosen, tampered(sums_of_the_hop_before)),
      engine_over(
          {"engine_gradient_ships_bf16", "optimized", "sums of dK, dV are rounded to bf16 per hop",
           "How often is a sum rounded on its way home?", "zhuzilin/ring-flash-attention #42"},
          as_chosen, changed_on_leaving(in_gradient, rounded_to_bf16)),
  };
}

std::vector<Mutant> of_fp8() {
  return {
      engine_over({"engine_fp8_stale_scale", "optimized",
                   "each fp8 block is decoded with the scale of the block before",
                   "Which codes does a scale belong to?", "NVIDIA/TransformerEngine #1483"},
                  over_fp8, with_fp8_scales(shift_by_one)),
      engine_over({"engine_fp8_scale_lost", "optimized", "fp8 codes are decoded with scale 1",
                   "What number is a code without its scale?", "NVIDIA/TransformerEngine #1134"},
                  over_fp8, with_fp8_scales(replace_by_one)),
  };
}

}  // namespace

std::vector<Mutant> engine_mutants() {
  std::vector<Mutant> all;
  for (const auto make : {of_chunks, of_integrity, of_gradients, of_fp8}) {
    for (Mutant& mutant : make()) all.push_back(std::move(mutant));
  }
  return all;
}

}  // namespace ringlab::mutants
