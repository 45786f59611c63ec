#include "property_tests/plugins/plugin_call.h"

#include <utility>

#include "property_tests/plugins/plugin_mask.h"
#include "property_tests/plugins/plugin_modifiers.h"

namespace ringlab::plugins {
namespace {

// Placement goes by shape, so that one element too many and one before the first both meet a guard
// in some case, and a case looks the same when it is replayed.
Placement placement_of(const Shape& s) {
  const bool even = (s.q_tokens + s.kv_tokens + s.head_dim + s.v_dim) % 2 == 0;
  return even ? Placement::at_the_end : Placement::at_the_start;
}

/// A filler that changes from call to call, so that a plugin cannot have written it by luck twice.
std::uint8_t filler_of(std::uint64_t sequence) {
  return static_cast<std::uint8_t>(0xc1 + sequence % 31);
}

constexpr std::uint8_t kInputFiller = 0xff;  // NaN in every type

std::int32_t layout_code(LayoutKind layout) {
  switch (layout) {
    case LayoutKind::contiguous:
      return RINGLAB_CONTIGUOUS;
    case LayoutKind::zigzag:
      return RINGLAB_ZIGZAG;
    default:
      return RINGLAB_STRIPED;
  }
}

/// An address for outputs other than last time's, whose pointer a plugin may have kept.
std::uint64_t output_address(std::uint64_t sequence, int id) {
  constexpr std::uint64_t kFirst = 0x400000000000u, kSpacing = std::uint64_t{1} << 28;
  const std::uint64_t place = (sequence * 7919 + static_cast<std::uint64_t>(id)) % 65536;
  return kFirst + place * kSpacing;
}

}  // namespace

// Abilities decide which forms are made: bytes of a mask cost as much memory as all scores.
PluginCall::PluginCall(const AttentionInput& input, const RunOptions& options,
                       const ringlab_abilities& can, std::uint64_t sequence)
    : shape_(input.problem.shape),
      dtype_(input.problem.dtype),
      lse_dtype_(input.problem.dtype == DType::f64 ? DType::f64 : DType::f32),
      inputs_(placement_of(input.problem.shape), kInputFiller),
      outputs_(placement_of(input.problem.shape), filler_of(sequence)),
      filler_(filler_of(sequence)) {
  message_.sequence = sequence;
  ringlab_call& call = message_.call;
  call.struct_size = sizeof(ringlab_call);
  call.version = RINGLAB_PLUGIN_VERSION;
  call.scale = input.problem.scale;
  call.threads = can.threads != 0 ? options.threads : 1;
  call.ranks = can.ranks != 0 ? options.ranks : 1;
  call.layout = layout_code(options.layout);
  call.tile_queries = options.tile_queries;
  call.tile_keys = options.tile_keys;
  add_inputs(input);
  add_mask(input.problem.mask, can.masks);
  add_modifiers(input.problem.modifiers);
  add_outputs(input.dout.has_value(), can);
}

void PluginCall::add_inputs(const AttentionInput& input) {
  ringlab_call& call = message_.call;
  Segment* segments = message_.segments;
  segments[kQ] = add_tensor(inputs_, input.q, dtype_, call.q);
  segments[kK] = add_tensor(inputs_, input.k, dtype_, call.k);
  segments[kV] = add_tensor(inputs_, input.v, dtype_, call.v);
  if (input.dout) segments[kDout] = add_tensor(inputs_, *input.dout, dtype_, call.dout);
}

void PluginCall::add_mask(const Mask& mask, std::uint32_t abilities) {
  const PluginMask forms = plugin_mask(mask, abilities);
  message_.call.mask = forms.mask;
  Segment* segments = message_.segments;
  segments[kPositions] = add_numbers(inputs_, forms.positions);
  segments[kBegins] = add_numbers(inputs_, forms.visible_begin);
  segments[kEnds] = add_numbers(inputs_, forms.visible_end);
  if (!forms.starts.empty()) segments[kStarts] = add_numbers(inputs_, forms.starts);
  const bool wants_bytes = (abilities & RINGLAB_MASK_BYTES) != 0 && forms.mask.kinds != 0;
  if (wants_bytes) segments[kBytes] = add_bytes(inputs_, forms.bytes);
}

void PluginCall::add_modifiers(const Modifiers& modifiers) {
  message_.call.modifiers = plugin_modifiers(modifiers);
  Segment* segments = message_.segments;
  if (!modifiers.alibi_slopes.empty()) {
    segments[kSlopes] = add_numbers(inputs_, modifiers.alibi_slopes);
  }
  if (!modifiers.sinks.empty()) segments[kSinks] = add_numbers(inputs_, modifiers.sinks);
  if (modifiers.dropout != 0) segments[kKept] = add_bytes(inputs_, kept_pairs(modifiers, shape_));
}

void PluginCall::add_outputs(bool gradients, const ringlab_abilities& can) {
  ringlab_call& call = message_.call;
  output(kOut, shape_.out(), dtype_, call.o);
  if (can.lse != 0) output(kLse, shape_.lse(), lse_dtype_, call.lse);
  if (!gradients) return;
  output(kDq, shape_.q(), dtype_, call.dq);
  output(kDk, shape_.k(), dtype_, call.dk);
  output(kDv, shape_.v(), dtype_, call.dv);
}

void PluginCall::output(SegmentId id, const Extents& extents, DType dtype, ringlab_tensor& shape) {
  Segment& segment = message_.segments[id];
  segment = add_output(outputs_, extents, dtype, message_.sequence, shape);
  segment.address = output_address(message_.sequence, id);
}

std::string PluginCall::read(const std::vector<std::uint8_t>& file, RunResult& result) const {
  std::string complaint;
  const auto note = [&](std::string what) {
    if (complaint.empty()) complaint = std::move(what);
  };
  const auto take = [&](SegmentId id, const Extents& extents, DType dtype) {
    Written written = read_output(file, message_.segments[id], extents, dtype, message_.sequence,
                                  kSegmentNames[id]);
    note(overrun(file, message_.segments[id], filler_, kSegmentNames[id]));
    note(written.complaint);
    return std::move(written.values);
  };
  result.output.out = take(kOut, shape_.out(), dtype_);
  if (message_.segments[kLse].pages > 0) {
    result.output.lse = take(kLse, shape_.lse(), lse_dtype_);
  }
  if (message_.segments[kDq].pages > 0) {
    result.gradients =
        AttentionGradients{take(kDq, shape_.q(), dtype_), take(kDk, shape_.k(), dtype_),
                           take(kDv, shape_.v(), dtype_)};
  }
  return complaint;
}

}  // namespace ringlab::plugins
