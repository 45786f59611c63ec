// Attention of yours, judged by the laws: its claims, random cases within them, a verdict.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "reference/core/dtype.h"
#include "reference/core/modifiers.h"
#include "reference/core/numerics.h"
#include "reference/core/run.h"

namespace ringlab {

/// Attention as a function of your own, and its claims. No case goes beyond them.
struct OwnAttention {
  std::string name = "yours";
  /// Gives out and lse, (batch, q_heads, q_tokens, v_dim) and (…, 1), of dense q, k and v whose
  /// numbers are of the problem's dtype. What it throws is a finding, but for a MachineError, which
  /// verify_attention() throws on.
  std::function<AttentionOutput(const AttentionInput&)> forward;
  /// Gives the gradients for AttentionInput::dout, which is there then; empty: there are none.
  std::function<AttentionGradients(const AttentionInput&)> backward = {};
  std::vector<DType> dtypes = {DType::f32};
  bool gives_lse = true;      ///< else lse is left empty
  bool any_mask = true;       ///< else none, and causal
  bool any_shape = true;      ///< else as many queries as keys, v_dim = head_dim, and none is 0
  bool grouped_heads = true;  ///< takes more query heads than K/V heads
  bool any_scale = true;      ///< else 1/sqrt(head_dim)
  bool same_bits = true;      ///< from run to run, and of a row wherever it stands
  std::vector<ModifierKind> modifiers = {};
  /// The arithmetic that bounds follow from; empty: what a correct kernel does in f32, whose
  /// rows are rescaled once for every key at most.
  std::function<NumericsProfile(const Problem&)> arithmetic = {};
};

/// The verdict on attention of yours.
struct AttentionVerdict {
  bool passed = false;
  int laws_held = 0;
  int laws_skipped = 0;  ///< laws that do not concern what it claims
  int laws_broken = 0;
  double worst_ratio = 0;                  ///< largest error / bound where laws held
  std::vector<std::string> mistakes = {};  ///< ids of the known mistakes that explain what broke
  /// A line for a pass; else the name of the mistake, the law, the smallest case and its failure.
  std::string text = {};
};

/// Tries `cases` random cases of every law; equal ones for equal seeds. Runs in this process, so a
/// crash ends it (a plugin has a process of its own: docs/plugins.md).
/// Usage error without a forward pass or a dtype, and for less than one case.
AttentionVerdict verify_attention(const OwnAttention& own, int cases = 40, std::uint64_t seed = 1);

}  // namespace ringlab
