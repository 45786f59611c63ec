// Mistakes in gradients on their way from the kernel to the caller.
#include <algorithm>
#include <optional>
#include <utility>

#include "property_tests/mutants/decorated.h"
#include "property_tests/mutants/planted.h"

namespace ringlab::mutants {
namespace {

using Tamper = void (*)(AttentionGradients&, const RunOptions&);

/// The correct stage, whose gradients are changed on their way to the caller.
Mutant with_tampered_gradients(MutantInfo info, Tamper tamper) {
  verify::Subject subject = subject_like(info, {DType::f32});
  subject.run = [run = subject.run, tamper](const AttentionInput& input,
                                            const RunOptions& options) {
    RunResult result = run(input, options);
    if (result.gradients) tamper(*result.gradients, options);
    return result;
  };
  return {std::move(info), std::move(subject)};
}

/// Exchanges the gradients of the first two ranks' keys.
void swap_first_two_shards(AttentionGradients& gradients, const RunOptions& options) {
  if (options.ranks < 2) return;
  for (Tensor<double>* tensor : {&gradients.dk, &gradients.dv}) {
    const Layout layout = make_layout(options, tensor->extents().tokens, options.kv_layout);
    const Positions& first = layout.positions(0);
    const Positions& second = layout.positions(1);
    const Tensor<double> before = *tensor;
    for_each_index(before.extents(), [&](auto b, auto h, auto j, auto c) {
      if (j >= first.size() || j >= second.size()) return;
      (*tensor)(b, h, first[j], c) = before(b, h, second[j], c);
      (*tensor)(b, h, second[j], c) = before(b, h, first[j], c);
    });
  }
}

/// Doubles dK and dV: the own chunk's sum is added once on the way and once more at home.
void double_key_gradients(AttentionGradients& gradients, const RunOptions& options) {
  if (options.ranks < 2) return;
  for (Tensor<double>* tensor : {&gradients.dk, &gradients.dv}) {
    for (double& x : tensor->values()) x *= 2;
  }
}

void swap_dk_and_dv(AttentionGradients& gradients, const RunOptions&) {
  if (gradients.dk.extents() == gradients.dv.extents()) std::swap(gradients.dk, gradients.dv);
}

/// Keeps one buffer for all runs that is added to and never cleared.
void add_to_what_was_there(AttentionGradients& gradients, const RunOptions&) {
  thread_local std::optional<AttentionGradients> buffer;
  for (auto tensor : {&AttentionGradients::dq, &AttentionGradients::dk, &AttentionGradients::dv}) {
    if (!buffer || !((*buffer).*tensor).extents().size()) continue;
    if (!(((*buffer).*tensor).extents() == (gradients.*tensor).extents())) continue;
    for (std::size_t i = 0; i < (gradients.*tensor).values().size(); ++i) {
      (gradients.*tensor).values()[i] += ((*buffer).*tensor).values()[i];
    }
  }
  buffer = gradients;
}

/// A path for whole heads that nobody ran: it leaves dK as it was allocated.
void forget_whole_heads(AttentionGradients& gradients, const RunOptions&) {
  const Extents& extents = gradients.dk.extents();
  if (extents.channels % 64 == 0 && extents.tokens >= 64) {
    std::ranges::fill(gradients.dk.values(), 0.0);
  }
}

/// Leaves out the second half of the channels in a kernel for wide groups.
void forget_channels_of_wide_groups(AttentionGradients& gradients, const RunOptions&) {
  const Extents& q = gradients.dq.extents();
  const Extents& k = gradients.dk.extents();
  if (q.channels < 128 || q.heads < 4 * k.heads) return;
  for_each_index(k, [&](auto b, auto h, auto j, auto c) {
    if (c >= 64) gradients.dk(b, h, j, c) = 0;
  });
}

void forget_rows_past_15_bits(AttentionGradients& gradients, const RunOptions&) {
  constexpr std::int64_t kCounted = 0x8000;
  for_each_index(gradients.dk.extents(), [&](auto b, auto h, auto j, auto c) {
    if (j >= kCounted) gradients.dk(b, h, j, c) = 0;
  });
}

}  // namespace

std::vector<Mutant> gradient_mutants() {
  return {
      with_tampered_gradients({"gradients_of_two_ranks_swapped", "backward",
                               "dk and dv of ranks 0 and 1 come back in each other's places",
                               "Which rank does a chunk belong to when it is home?", "classic"},
                              swap_first_two_shards),
      with_tampered_gradients({"gradients_of_keys_doubled", "backward",
                               "dk and dv are twice what they should be on several ranks",
                               "How often is the own part added?", "NVIDIA/Megatron-LM #673"},
                              double_key_gradients),
      with_tampered_gradients(
          {"gradients_of_keys_and_values_swapped", "backward", "dk is returned as dv and dv as dk",
           "In which order are the gradients returned?", "classic"},
          swap_dk_and_dv),
      with_tampered_gradients(
          {"gradients_not_zeroed", "backward", "gradients are added to those of the run before",
           "What lies in the buffer when the sum begins?", "zhuzilin/ring-flash-attention 22f0e1d"},
          add_to_what_was_there),
      with_tampered_gradients(
          {"gradients_of_whole_heads_forgotten", "backward",
           "dk is 0 where channels are a multiple of 64 and keys are 64 or more",
           "Which of your kernels ran in the tests?", "classic"},
          forget_whole_heads),
      with_tampered_gradients(
          {"gradients_of_wide_groups_cut", "backward",
           "dk of channels from 64 on is 0 in groups of 4 heads of 128 channels",
           "Which of your kernels does a model of today call?", "classic"},
          forget_channels_of_wide_groups),
      with_tampered_gradients(
          {"gradients_of_keys_past_15_bits", "backward", "dk of keys from 32768 on is 0",
           "How many keys does a signed number of 16 bits count?", "classic"},
          forget_rows_past_15_bits),
  };
}

}  // namespace ringlab::mutants
