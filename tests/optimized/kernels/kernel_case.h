// Cases that block kernels are tried in: attention cut into chunks as a ring cuts it. Every rank's
// queries meet every chunk in turn, and the running state is carried from hop to hop.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reference/core/layout.h"
#include "reference/core/numerics.h"
#include "reference/core/problem.h"
#include "reference/core/run.h"

namespace ringlab {

/// late_maxima: scores grow from key to key, so that every block has a new maximum. early_maxima:
/// they fall, so that kernels that walk backwards have.
enum class InputKind { normal, late_maxima, early_maxima };

struct KernelCase {
  Shape shape;
  std::string mask = "full";  ///< as mask_of() takes it
  LayoutKind layout = LayoutKind::contiguous;
  int ranks = 1;
  InputKind inputs = InputKind::normal;
  unsigned seed = 0;
  Modifiers modifiers = {};
  bool shuffled = false;     ///< the rows of each rank are in no order
  std::string text() const;  ///< a line that says all of it
};

/// As on the command line; but "file:bits" is a bit matrix that shows three of five pairs.
Mask mask_of(const std::string& text, std::int64_t q_tokens, std::int64_t kv_tokens);

/// Any sizes, masks, layouts and ranks. Channels are a multiple of `step`, `widest` at most.
KernelCase random_case(unsigned seed, std::int64_t widest, std::int64_t step = 8);

/// The case with numbers.
struct KernelTrial {
  Problem problem;
  AttentionTensors tensors;
  Tensor<double> dout;
  Layout q_layout, kv_layout;
  unsigned seed = 0;

  AttentionInput input() const { return tensors.input(problem); }
  /// Blocks of keys that a row meets at most, for numerics profiles.
  std::int64_t blocks(std::int64_t fewest_keys = 32) const;
};
KernelTrial make_trial(const KernelCase& c, DType dtype);

/// One chunk of a tensor, dense.
template <class Element>
std::vector<Element> take(const Tensor<double>& tensor, const Positions& rows) {
  std::vector<Element> chunk;
  const Extents& e = tensor.extents();
  for_each_index({e.batch, e.heads, rows.size(), e.channels}, [&](auto b, auto h, auto t, auto c) {
    chunk.push_back(static_cast<Element>(tensor(b, h, rows[t], c)));
  });
  return chunk;
}

/// Back to its place in the tensor.
template <class Number>
void put(Tensor<double>& tensor, const Positions& rows, const std::vector<Number>& chunk) {
  std::size_t at = 0;
  const Extents& e = tensor.extents();
  for_each_index({e.batch, e.heads, rows.size(), e.channels}, [&](auto b, auto h, auto t, auto c) {
    tensor(b, h, rows[t], c) = static_cast<double>(chunk[at++]);
  });
}

/// Σ_c dout out of the rows, rounded once.
template <class Real>
std::vector<Real> delta_of(const KernelTrial& trial, const AttentionOutput& output,
                           const Positions& queries) {
  std::vector<Real> delta;
  const Shape& s = trial.problem.shape;
  for_each_index({s.batch, s.q_heads, queries.size(), 1}, [&](auto b, auto h, auto t, auto) {
    double sum = 0;
    for (std::int64_t c = 0; c < s.v_dim; ++c) {
      sum += trial.dout(b, h, queries[t], c) * output.out(b, h, queries[t], c);
    }
    delta.push_back(static_cast<Real>(sum));
  });
  return delta;
}

/// times the scale where a gradient has it, in f32 or f64, rounded to the problem's dtype.
void finish_gradients(AttentionGradients& gradients, const Problem& problem);

/// The exact forward pass, rounded once.
AttentionOutput exact_output(const KernelTrial& trial);

/// Empty, or what is wrong with it. Bounds within which zeros lie say nothing, and are wrong, too.
std::string judge(const KernelTrial& trial, const AttentionOutput& got,
                  const NumericsProfile& profile);
std::string judge(const KernelTrial& trial, const AttentionGradients& got,
                  const NumericsProfile& profile);

}  // namespace ringlab
