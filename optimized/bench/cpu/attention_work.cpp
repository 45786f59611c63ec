#include "optimized/bench/cpu/attention_work.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "optimized/cpu/base_2.h"
#include "optimized/cpu/parallel.h"

namespace ringlab::bench {
namespace {

/// Rounds finite numbers to nearest even, in integers, so that compilers can vectorise it.
void narrow(const float* from, std::size_t count, BFloat16* to) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(from[i]);
    to[i].bits = static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
  }
}
void narrow(const float* from, std::size_t count, float* to) { std::copy_n(from, count, to); }

/// Calls part(begin, end) for parts of 0 … count-1 on some threads.
template <class Part>
void in_parts(std::size_t count, int threads, const Part& part) {
  constexpr std::size_t kRows = 256;
  const auto parts = static_cast<std::int64_t>((count + kRows - 1) / kRows);
  cpu::share_out(parts, threads, [&] {
    return [&](std::int64_t index) {
      const std::size_t begin = static_cast<std::size_t>(index) * kRows;
      part(begin, std::min(begin + kRows, count));
    };
  });
}

Positions last_positions(std::int64_t count, std::int64_t tokens) {
  std::vector<std::int64_t> list;
  for (std::int64_t i = tokens - count; i < tokens; ++i) list.push_back(i);
  return Positions::from_list(list);
}

}  // namespace

template <class Element>
std::vector<Element> normal_values(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<Element> values;
  values.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<Element>(normal(random)));
  return values;
}
template std::vector<float> normal_values(std::int64_t count, unsigned seed);
template std::vector<double> normal_values(std::int64_t count, unsigned seed);
template std::vector<BFloat16> normal_values(std::int64_t count, unsigned seed);

template <class Element>
AttentionWork<Element>::AttentionWork(const AttentionSizes& sizes)
    : sizes_(sizes),
      q_extents_{1, sizes.heads, sizes.queries, sizes.head_dim},
      k_extents_{1, sizes.heads, sizes.tokens, sizes.head_dim},
      mask_(parse_mask(sizes.mask).bind(sizes.tokens, sizes.tokens)),
      queries_(last_positions(sizes.queries, sizes.tokens)),
      keys_(Positions::all(sizes.tokens)),
      q_(normal_values<Element>(q_extents_.size(), 1)),
      k_(normal_values<Element>(k_extents_.size(), 2)),
      v_(normal_values<Element>(k_extents_.size(), 3)),
      dout_(normal_values<Element>(q_extents_.size(), 4)),
      states_(static_cast<std::size_t>(sizes.heads * sizes.queries)),
      accs_(q_.size()),
      lse_(states_.size()),
      delta_(states_.size()),
      out_(q_.size()) {}

template <class Element>
cpu::Block<Element> AttentionWork<Element>::block() const {
  return {.mask = mask_,
          .queries = queries_,
          .keys = keys_,
          .scale = 1 / std::sqrt(static_cast<double>(sizes_.head_dim)),
          .tiles = sizes_.tiles,
          .q = dense_view(q_.data(), q_extents_),
          .k = dense_view(k_.data(), k_extents_),
          .v = dense_view(v_.data(), k_extents_),
          .threads = sizes_.threads};
}

template <class Element>
void AttentionWork<Element>::run_kernel() {
  std::ranges::fill(states_, SoftmaxState<Real>{});
  std::ranges::fill(accs_, Real(0));
  cpu::forward_block(block(), states_.data(), accs_.data());
}

template <class Element>
void AttentionWork<Element>::run_forward() {
  run_kernel();
  const auto channels = static_cast<std::size_t>(sizes_.head_dim);
  in_parts(rows(), sizes_.threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      Real* const acc = accs_.data() + row * channels;
      lse_[row] = finish_state(cpu::natural_state(states_[row]), acc, sizes_.head_dim);
      narrow(acc, channels, out_.data() + row * channels);
    }
  });
}

template <class Element>
void AttentionWork<Element>::prepare_backward() {
  if (!dq_.empty()) return;
  run_forward();
  for (auto* sums : {&dq_sums_, &dk_sums_, &dv_sums_}) sums->assign(q_.size(), Real(0));
  for (auto* gradient : {&dq_, &dk_, &dv_}) gradient->resize(q_.size());
}

template <class Element>
void AttentionWork<Element>::run_backward_kernel() {
  prepare_backward();
  cpu::backward_block(
      block(),
      {.dout = dense_view(dout_.data(), q_extents_), .lse = lse_.data(), .delta = delta_.data()},
      {.dq = dq_sums_.data(), .dk = dk_sums_.data(), .dv = dv_sums_.data()});
}

template <class Element>
void AttentionWork<Element>::run_backward() {
  prepare_backward();
  const auto channels = static_cast<std::size_t>(sizes_.head_dim);
  in_parts(rows(), sizes_.threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      Real sum = 0;
      for (std::size_t i = row * channels; i < (row + 1) * channels; ++i) {
        sum += static_cast<Real>(dout_[i]) * static_cast<Real>(out_[i]);
      }
      delta_[row] = sum;
    }
    for (auto* sums : {&dq_sums_, &dk_sums_, &dv_sums_}) {
      std::fill(sums->begin() + static_cast<std::ptrdiff_t>(begin * channels),
                sums->begin() + static_cast<std::ptrdiff_t>(end * channels), Real(0));
    }
  });
  run_backward_kernel();
  const auto scale = static_cast<Real>(block().scale);
  in_parts(rows(), sizes_.threads, [&](std::size_t begin, std::size_t end) {
    const std::size_t first = begin * channels, count = (end - begin) * channels;
    for (auto* sums : {&dq_sums_, &dk_sums_}) {
      for (std::size_t i = first; i < first + count; ++i) (*sums)[i] *= scale;
    }
    narrow(dq_sums_.data() + first, count, dq_.data() + first);
    narrow(dk_sums_.data() + first, count, dk_.data() + first);
    narrow(dv_sums_.data() + first, count, dv_.data() + first);
  });
}

template <class Element>
double AttentionWork<Element>::forward_flops() const {
  const double pairs =
      static_cast<double>(mask_.count(queries_, keys_)) * static_cast<double>(sizes_.heads);
  return 4 * pairs * static_cast<double>(sizes_.head_dim);
}

template <class Element>
double AttentionWork<Element>::forward_bytes() const {
  const std::int64_t groups = (sizes_.queries + sizes_.tiles.queries - 1) / sizes_.tiles.queries;
  const double read = static_cast<double>(q_extents_.size() + 2 * groups * k_extents_.size()) *
                      static_cast<double>(sizeof(Element));
  return read + 2.0 * static_cast<double>(q_extents_.size()) * static_cast<double>(sizeof(Real));
}

template class AttentionWork<float>;
template class AttentionWork<BFloat16>;

}  // namespace ringlab::bench
