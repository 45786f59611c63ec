// The kernels of every type on every kind of vectors, which keep the contract of block kernels.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "optimized/cpu/base_2.h"
#include "optimized/cpu/block_kernel.h"
#include "optimized/cpu/kernel_profile.h"
#include "optimized/cpu/vectors.h"
#include "tests/optimized/kernels/block_kernel.h"
#include "tests/repetitions.h"

namespace ringlab {
namespace cpu {
namespace {

std::int64_t tile_keys(const KernelTrial& trial) { return 1 + trial.seed * 37 % 50; }

/// One rank's queries, which meet the chunks of all ranks with threads and tiles of `seed`.
template <class Element>
class Rank {
 public:
  Rank(const KernelTrial& trial, int rank, std::uint64_t seed)
      : trial_(trial),
        queries_(trial.q_layout.positions(rank)),
        q_(take<Element>(trial.tensors.q, queries_)),
        rank_(rank),
        seed_(seed) {}

  /// visit(block, positions of keys) for one chunk after the other, the own first.
  template <class Visit>
  void for_each_chunk(const Visit& visit) const {
    constexpr std::int64_t kTileQueries[] = {1, 24, 48, 33, 1000};
    const Shape& s = trial_.problem.shape;
    const int ranks = trial_.kv_layout.ranks();
    for (int hop = 0; hop < ranks; ++hop) {
      const Positions& keys = trial_.kv_layout.positions((rank_ + hop) % ranks);
      const std::vector<Element> k = take<Element>(trial_.tensors.k, keys);
      const std::vector<Element> v = take<Element>(trial_.tensors.v, keys);
      const auto view = [](const std::vector<Element>& rows, Extents extents, std::int64_t tokens) {
        extents.tokens = tokens;
        return dense_view(rows.data(), extents);
      };
      visit(Block<Element>{.mask = trial_.problem.mask,
                           .queries = queries_,
                           .keys = keys,
                           .scale = trial_.problem.scale,
                           .tiles = {.queries = kTileQueries[seed_ % 5], .keys = tile_keys(trial_)},
                           .q = view(q_, s.q(), queries_.size()),
                           .k = view(k, s.k(), keys.size()),
                           .v = view(v, s.v(), keys.size()),
                           .threads = 1 + static_cast<int>(seed_ % 4),
                           .modifiers = &trial_.problem.modifiers},
            keys);
    }
  }
  const Positions& queries() const { return queries_; }
  std::size_t rows() const {
    return static_cast<std::size_t>(trial_.problem.shape.batch * trial_.problem.shape.q_heads *
                                    queries_.size());
  }

 private:
  const KernelTrial& trial_;
  const Positions& queries_;
  std::vector<Element> q_;
  int rank_;
  std::uint64_t seed_;
};

template <class Element>
AttentionOutput run_forward(const KernelTrial& trial, std::uint64_t seed) {
  using Real = Accumulator<Element>;
  const Shape& s = trial.problem.shape;
  AttentionOutput output{Tensor<double>(s.out()), Tensor<double>(s.lse())};
  for (int rank = 0; rank < trial.q_layout.ranks(); ++rank) {
    const Rank<Element> mine(trial, rank, seed);
    std::vector<SoftmaxState<Real>> states(mine.rows());
    std::vector<Real> accs(mine.rows() * static_cast<std::size_t>(s.v_dim)), lse;
    mine.for_each_chunk([&](const Block<Element>& block, const Positions&) {
      forward_block(block, states.data(), accs.data());
    });
    for (std::size_t row = 0; row < states.size(); ++row) {
      lse.push_back(finish_state(natural_state(states[row]),
                                 accs.data() + row * static_cast<std::size_t>(s.v_dim), s.v_dim));
    }
    put(output.out, mine.queries(), accs);
    put(output.lse, mine.queries(), lse);
  }
  for (double& x : output.out.values()) x = round_to(trial.problem.dtype, x);
  return output;
}

template <class Element>
AttentionGradients run_backward(const KernelTrial& trial, const AttentionOutput& output,
                                const GradientOptions& options) {
  using Real = Accumulator<Element>;
  const Shape& s = trial.problem.shape;
  AttentionGradients sums{Tensor<double>(s.q()), Tensor<double>(s.k()), Tensor<double>(s.v())};
  for (int rank = 0; rank < trial.q_layout.ranks(); ++rank) {
    const Rank<Element> mine(trial, rank, options.seed);
    const auto dout = take<Element>(trial.dout, mine.queries());
    const auto lse = take<Real>(output.lse, mine.queries());
    const auto delta = delta_of<Real>(trial, output, mine.queries());
    Extents extents = s.out();
    extents.tokens = mine.queries().size();
    mine.for_each_chunk([&](const Block<Element>& block, const Positions& keys) {
      auto dq = take<Real>(sums.dq, mine.queries());
      auto dk = take<Real>(sums.dk, keys), dv = take<Real>(sums.dv, keys);
      backward_block(
          block,
          QueryGradients<Element>{dense_view(dout.data(), extents), lse.data(), delta.data()},
          BlockGradients<Element>{dq.data(), dk.data(), dv.data()});
      put(sums.dq, mine.queries(), dq);
      put(sums.dk, keys, dk);
      put(sums.dv, keys, dv);
    });
  }
  finish_gradients(sums, trial.problem);
  return sums;
}

/// Few channels, in any number; half of them with some of the modifiers, a quarter in no order.
std::vector<KernelCase> small_cases(unsigned count) {
  std::vector<KernelCase> cases;
  for (unsigned seed = 0; seed < count; ++seed) {
    KernelCase c = random_case(seed, 20, 1);
    c.shuffled = seed % 4 == 3;
    if (seed % 5 == 2) c.mask = seed % 2 ? "file:bits" : "causal+file:bits";
    cases.push_back(c);
    if (seed % 2 == 0) continue;
    const unsigned some = seed / 2 % 7 + 1;  // each set of the three but the empty one
    Modifiers& modifiers = cases.back().modifiers;
    if (some & 1) modifiers.softcap = 1 + seed % 20;
    for (std::int64_t head = 0; (some & 2) && head < c.shape.q_heads; ++head) {
      modifiers.alibi_slopes.push_back(0.5 / static_cast<double>(head + 1));
    }
    if (some & 4) modifiers.dropout = 0.4;
    modifiers.dropout_seed = seed;
  }
  return cases;
}

std::string use(const std::string& vectors) {
  use_vectors(vectors);
  return "";
}

template <class Element>
BlockKernel kernel_on(const std::string& vectors) {
  BlockKernel kernel{.name = std::string(dtype_info(dtype_of<Element>).name) + "_" + vectors,
                     .dtype = dtype_of<Element>,
                     .forward = &run_forward<Element>,
                     .backward = &run_backward<Element>,
                     .profile = [](const KernelTrial& trial) {
                       std::int64_t blocks = 0;
                       for (int rank = 0; rank < trial.kv_layout.ranks(); ++rank) {
                         blocks += key_blocks(trial.kv_layout.positions(rank), tile_keys(trial));
                       }
                       return kernel_profile(trial.problem.dtype, blocks);
                     }};
  kernel.groups = contract_cases({.random = 0,
                                  .queries = {1, 33},
                                  .keys = {1, 50},
                                  .wide_queries = {},
                                  .wide_keys = {},
                                  .rising = {300},
                                  .keys_of_widths = 33});
  kernel.groups.push_back({"random", small_cases(12)});
  kernel.orders = {true};
  kernel.repeated = small_cases(repetitions(50u));
  kernel.spoilt = small_cases(repetitions(24u));
  kernel.begin = [vectors] { return use(vectors); };
  kernel.end = [] { return use(available_vectors().front()); };
  return kernel;
}

}  // namespace
}  // namespace cpu

std::vector<BlockKernel> every_block_kernel() {
  std::vector<BlockKernel> all;
  for (const std::string& vectors : cpu::available_vectors()) {
    all.push_back(cpu::kernel_on<double>(vectors));
    all.push_back(cpu::kernel_on<float>(vectors));
    all.push_back(cpu::kernel_on<Half>(vectors));
    all.push_back(cpu::kernel_on<BFloat16>(vectors));
  }
  return all;
}

}  // namespace ringlab
