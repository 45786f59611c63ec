// Mistakes in the inputs of a kernel: its mask, its scale, its strides.
#include <cmath>
#include <utility>

#include "property_tests/mutants/decorated.h"
#include "property_tests/mutants/planted.h"

namespace ringlab::mutants {
namespace {

using Tamper = void (*)(AttentionInput&, const RunOptions&);

/// The correct stage, given an input that was changed: as a caller's bug would.
Mutant with_tampered_input(MutantInfo info, Tamper tamper) {
  verify::Subject subject = subject_like(info, {DType::f32});
  subject.run = [run = subject.run, tamper](AttentionInput input, const RunOptions& options) {
    tamper(input, options);
    return run(input, options);
  };
  return {std::move(info), std::move(subject)};
}

/// The mask with `change` applied to its terms of one kind.
template <class Term, class Change>
void change_terms(AttentionInput& input, Change change) {
  std::vector<MaskTerm> terms = input.problem.mask.terms();
  for (MaskTerm& term : terms) {
    if (auto* found = std::get_if<Term>(&term)) change(*found);
  }
  const Shape& shape = input.problem.shape;
  input.problem.mask = Mask(std::move(terms)).bind(shape.q_tokens, shape.kv_tokens);
}

void widen_window(AttentionInput& input, const RunOptions&) {
  change_terms<WindowMask>(input, [](WindowMask& window) {
    if (window.left != WindowMask::kUnlimited) ++window.left;
  });
}

void move_document_boundary(AttentionInput& input, const RunOptions&) {
  change_terms<DocumentsMask>(input, [](DocumentsMask& documents) {
    std::vector<std::int64_t>& lengths = documents.lengths;
    if (lengths.size() < 2 || lengths[0] == 0) return;
    --lengths[0];
    ++lengths[1];
  });
}

void drop_window(AttentionInput& input, const RunOptions&) {
  change_terms<WindowMask>(input, [](WindowMask& window) { window = WindowMask{}; });
}

/// Hides keys beyond the last multiple of 2 · ranks.
void round_length_down(AttentionInput& input, const RunOptions& options) {
  const Shape& shape = input.problem.shape;
  const std::int64_t kept = shape.kv_tokens / (2 * options.ranks) * (2 * options.ranks);
  std::vector<std::uint8_t> bits(static_cast<std::size_t>(shape.q_tokens * shape.kv_tokens));
  for (std::size_t i = 0; i < bits.size(); ++i) {
    bits[i] = static_cast<std::int64_t>(i) % shape.kv_tokens < kept;
  }
  std::vector<MaskTerm> terms = input.problem.mask.terms();
  terms.emplace_back(BitMask{shape.q_tokens, shape.kv_tokens, std::move(bits), ""});
  input.problem.mask = Mask(std::move(terms)).bind(shape.q_tokens, shape.kv_tokens);
}

void scale_for_one_more_channel(AttentionInput& input, const RunOptions&) {
  const auto d = static_cast<double>(input.problem.shape.head_dim);
  input.problem.scale *= std::sqrt(d / (d + 1));
}

/// Keeps the ends of windows in 32 bits.
void cut_window_to_32_bits(AttentionInput& input, const RunOptions&) {
  const auto cut = [](std::int64_t end) {
    return end == WindowMask::kUnlimited ? end : end & 0xffffffff;
  };
  change_terms<WindowMask>(input, [&](WindowMask& window) {
    window = {cut(window.left), cut(window.right)};
  });
}

/// Reads keys and values from the 65 537th on where the first ones are.
Mutant with_keys_counted_in_16_bits() {
  MutantInfo info{"keys_counted_in_16_bits", "flash_blocks",
                  "key 65536 and its value are those of key 0, and so on",
                  "How many keys does a counter of 16 bits tell apart?", "classic"};
  verify::Subject subject = subject_like(info, {DType::f32});
  subject.run = [run = subject.run](AttentionInput input, const RunOptions& options) {
    constexpr std::int64_t kCounted = 0x10000;
    if (input.k.extents.tokens <= kCounted) return run(input, options);
    const auto wrapped = [](const TensorView<const double>& x) {
      Tensor<double> copy(x.extents);
      for_each_index(x.extents, [&](auto b, auto h, auto j, auto c) {
        copy(b, h, j, c) = x(b, h, j % kCounted, c);
      });
      return copy;
    };
    const Tensor<double> k = wrapped(input.k), v = wrapped(input.v);
    input.k = k.view();
    input.v = v.view();
    return run(input, options);
  };
  return {std::move(info), std::move(subject)};
}

/// Gives equal weights in heads of a size that only models have.
void forget_scores_of_wide_groups(AttentionInput& input, const RunOptions&) {
  const Shape& s = input.problem.shape;
  if (s.head_dim >= 128 && s.kv_tokens >= 512 && s.q_heads >= 8 * s.kv_heads) {
    input.problem.scale = 0;
  }
}

/// Loses the borders of documents from key 32768 on.
void join_far_documents(AttentionInput& input, const RunOptions&) {
  constexpr std::int64_t kCounted = 0x8000;
  change_terms<DocumentsMask>(input, [](DocumentsMask& documents) {
    std::vector<std::int64_t> kept;
    std::int64_t begin = 0;
    for (const std::int64_t length : documents.lengths) {
      if (begin >= kCounted && !kept.empty()) {
        kept.back() += length;
      } else {
        kept.push_back(length);
      }
      begin += length;
    }
    documents.lengths = kept;
  });
}

/// Reads memory as if it were dense: only where all strides are positive, so that every address
/// read lies inside the tensor.
void read_as_dense(TensorView<const double>& view) {
  const Strides& s = view.strides;
  if (s.batch > 0 && s.head > 0 && s.token > 0 && s.channel > 0) {
    view.strides = dense_strides(view.extents);
  }
}

void ignore_strides(AttentionInput& input, const RunOptions&) {
  read_as_dense(input.k);
  read_as_dense(input.v);
}

/// Ignores strides in the backward pass alone; the forward pass honours them.
void ignore_strides_of_gradients(AttentionInput& input, const RunOptions&) {
  if (input.dout) read_as_dense(*input.dout);
}
void ignore_key_strides_backwards(AttentionInput& input, const RunOptions&) {
  if (input.dout) read_as_dense(input.k);
}

/// A kernel whose offsets have 31 bits: elements further away are read from the first element, for
/// a wrapped offset need not lead to memory.
Mutant with_short_offsets() {
  MutantInfo info{"offsets_in_31_bits", "broadcast",
                  "elements of v that are 2^31 or more from the first are not found",
                  "How large is a tensor whose offsets do not fit an int?", "classic"};
  verify::Subject subject = subject_like(info, {DType::f32});
  subject.run = [run = subject.run](AttentionInput input, const RunOptions& options) {
    constexpr std::int64_t kEnd = std::int64_t{1} << 31;
    Tensor<double> reached(input.v.extents);
    for_each_index(input.v.extents, [&](auto b, auto h, auto t, auto c) {
      const std::int64_t offset = input.v.offset(b, h, t, c);
      reached(b, h, t, c) = input.v.data[offset < kEnd && offset >= -kEnd ? offset : 0];
    });
    input.v = std::as_const(reached).view();
    return run(input, options);
  };
  return {std::move(info), std::move(subject)};
}

/// Leaves out the third tile of keys for the third tile of queries, with tiles of 128, in the
/// backward pass.
void skip_third_tile_backwards(AttentionInput& input, const RunOptions&) {
  constexpr std::int64_t kThird = 256, kFourth = 384;
  const Shape& s = input.problem.shape;
  if (!input.dout || s.q_tokens <= kThird || s.kv_tokens <= kThird) return;
  std::vector<std::uint8_t> bits(static_cast<std::size_t>(s.q_tokens * s.kv_tokens));
  for (std::int64_t i = 0; i < s.q_tokens; ++i) {
    for (std::int64_t j = 0; j < s.kv_tokens; ++j) {
      const bool is_skipped = i >= kThird && i < kFourth && j >= kThird && j < kFourth;
      bits[static_cast<std::size_t>(i * s.kv_tokens + j)] = is_skipped ? 0 : 1;
    }
  }
  std::vector<MaskTerm> terms = input.problem.mask.terms();
  terms.emplace_back(BitMask{s.q_tokens, s.kv_tokens, std::move(bits), ""});
  input.problem.mask = Mask(std::move(terms)).bind(s.q_tokens, s.kv_tokens);
}

void forget_batch_stride(AttentionInput& input, const RunOptions&) { input.v.strides.batch = 0; }

/// Multiplies the caller's own q by the scale, to save a multiplication later.
void scale_query_in_place(AttentionInput& input, const RunOptions&) {
  const TensorView<const double> q = input.q;
  for_each_index(q.extents, [&](auto b, auto h, auto t, auto c) {
    double& value = const_cast<double&>(q(b, h, t, c));
    value = round_to(input.problem.dtype, value * input.problem.scale);
  });
  input.problem.scale = 1;
}

/// Reads values below the normal range as zero, as processors do in some modes.
Mutant with_flushed_values() {
  MutantInfo info{"subnormals_flushed", "flash_blocks", "subnormal values are read as zero",
                  "In which mode does the processor run when the kernel is called?", "classic"};
  verify::Subject subject = subject_like(info, {DType::f32});
  subject.run = [run = subject.run](AttentionInput input, const RunOptions& options) {
    Tensor<double> flushed(input.v.extents);
    const double least = dtype_info(input.problem.dtype).min_normal;
    for_each_index(input.v.extents, [&](auto b, auto h, auto t, auto c) {
      const double x = input.v(b, h, t, c);
      flushed(b, h, t, c) = std::abs(x) < least ? 0 : x;
    });
    input.v = flushed.view();
    return run(input, options);
  };
  return {std::move(info), std::move(subject)};
}

/// Rounds heads of q and k down to pairs of channels.
void drop_odd_channel(AttentionInput& input, const RunOptions&) {
  Shape& shape = input.problem.shape;
  if (shape.head_dim < 2) return;
  shape.head_dim -= shape.head_dim % 2;
  input.q.extents.channels = input.k.extents.channels = shape.head_dim;
}

}  // namespace

std::vector<Mutant> input_mutants() {
  return {
      with_tampered_input(
          {"window_one_too_wide", "causal_ring", "each row sees one key before its window",
           "Is the left end of the window part of it?", "SandAI-org/MagiAttention #108"},
          widen_window),
      with_tampered_input(
          {"window_ignored", "ring", "a sliding window is treated as full attention",
           "Which parts of the program ever look at the window?", "NVIDIA/TransformerEngine #3527"},
          drop_window),
      with_tampered_input({"document_boundary_off_by_one", "causal_ring",
                           "the last token of the first document counts as part of the second",
                           "Where does the first document end?", "NVIDIA/TransformerEngine #3331"},
                          move_document_boundary),
      with_tampered_input(
          {"length_rounded_down", "ring", "keys after the last multiple of 2P are dropped",
           "What if 2P does not divide the number of tokens?", "NVIDIA/TransformerEngine #1930"},
          round_length_down),
      with_tampered_input(
          {"scale_of_one_more_channel", "flash_blocks", "scores are scaled by 1/sqrt(d + 1)",
           "What is the scale for head_dim 1?", "classic"},
          scale_for_one_more_channel),
      with_tampered_input(
          {"odd_channel_dropped", "flash_blocks", "the last channel of an odd head_dim is ignored",
           "What does a kernel that loads pairs do with the last channel?",
           "SandAI-org/MagiAttention #155"},
          drop_odd_channel),
      with_tampered_input(
          {"strides_ignored", "broadcast", "strided k and v are read as if they were dense",
           "What does a transposed tensor look like in memory?",
           "zhuzilin/ring-flash-attention 1cad320"},
          ignore_strides),
      with_tampered_input(
          {"gradient_strides_ignored", "straight_backward",
           "a strided dout is read as if it were dense",
           "Who made the tensor that comes from above, and in which memory order?", "classic"},
          ignore_strides_of_gradients),
      with_tampered_input(
          {"key_strides_ignored_backwards", "straight_backward",
           "the backward pass reads a strided k as if it were dense",
           "Does the backward pass read k in the order that the forward pass does?", "classic"},
          ignore_key_strides_backwards),
      with_short_offsets(),
      with_keys_counted_in_16_bits(),
      with_tampered_input(
          {"scores_of_wide_groups_forgotten", "flash_blocks",
           "8 heads of 128 channels on one K/V head give the mean of v from 512 keys on",
           "Which of your kernels does a model of today call?", "classic"},
          forget_scores_of_wide_groups),
      with_tampered_input(
          {"document_borders_in_15_bits", "flash_blocks",
           "documents that begin at key 32768 or behind it are one with the document before",
           "How far away may a document begin?", "classic"},
          join_far_documents),
      with_tampered_input(
          {"window_ends_in_32_bits", "causal_ring", "a window of 2^32 keys is one of none",
           "How does a caller say that a window has no end?", "classic"},
          cut_window_to_32_bits),
      with_tampered_input(
          {"third_tile_skipped_backwards", "backward",
           "the third 128 queries lack the gradients of the third 128 keys",
           "How many tiles does a test need to come back to the first buffer?", "classic"},
          skip_third_tile_backwards),
      with_tampered_input({"batch_stride_forgotten", "flash_blocks",
                           "every batch entry reads the values of the first",
                           "How far is it from one batch entry to the next?", "DeepSpeed #5664"},
                          forget_batch_stride),
      with_tampered_input(
          {"query_scaled_in_place", "broadcast", "the caller's q is multiplied by the scale",
           "Who owns q after the call?", "BurstAttention cf429a6"},
          scale_query_in_place),
      with_flushed_values(),
  };
}

}  // namespace ringlab::mutants
