// The insides of the f32 kernels one by one, on data that stays in the first-level cache: how fast
// each is by itself. Google Benchmark; not part of `ringlab_goals`.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "optimized/bench/cpu/micro.cpp"
#include <hwy/foreach_target.h>  // compiles this file once per target
#include <hwy/highway.h>

#include "optimized/cpu/forward_tile-inl.h"
#include "optimized/cpu/vector_exp2-inl.h"
#include "optimized/cpu/widen-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ringlab::cpu::HWY_NAMESPACE {

/// Queries of a tile on these vectors.
std::int64_t micro_width() { return tile_width<float>(); }

/// scores (keys, width) of keys (keys, head_dim) and queries (head_dim, width).
void micro_scores(const float* keys, const float* queries, std::int64_t count,
                  std::int64_t head_dim, float* scores) {
  multiply<Result::replaced>(Factors<SideBySide::terms, float>{keys, head_dim}, count, queries,
                             head_dim, scores);
}
/// sums (head_dim, width) += values (keys, head_dim) and weights (keys, width).
void micro_values(const float* values, const float* weights, std::int64_t count,
                  std::int64_t head_dim, float* sums) {
  multiply<Result::added>(Factors<SideBySide::rows, float>{values, head_dim}, head_dim, weights,
                          count, sums);
}
/// count is a multiple of every vector's lanes.
void micro_exp2(const float* from, std::int64_t count, float* to) {
  const hn::ScalableTag<float> d;
  const Exp2<decltype(d)> exp2(d);
  for (std::int64_t i = 0; i < count; i += lanes<float>()) {
    hn::StoreU(exp2(hn::LoadU(d, from + i)), d, to + i);
  }
}
/// Maxima, weights and sums of a block of scores, in place.
void micro_weigh(float* scores, std::int64_t count, float* row_max, float* row_sum) {
  QueryTile<float> tile = {};
  tile.row_max = row_max;
  tile.row_sum = row_sum;
  const Tops<float> tops = find_tops<float>(scores, whole(count));
  for (int x = 0; x < kTileVectors; ++x) weigh(tile, x, tops.of[x], count, count, scores);
}
/// The cost of a block whose maxima rose: all sums times a factor.
void micro_rescale(float* sums, std::int64_t count) {
  const hn::ScalableTag<float> d;
  const auto keep = hn::Set(d, 0.999f);
  for (std::int64_t i = 0; i < count; i += lanes<float>()) {
    hn::StoreU(hn::Mul(hn::LoadU(d, sums + i), keep), d, sums + i);
  }
}
bool micro_widen(const BFloat16* from, std::int64_t count, float* to) {
  return widen_all(from, count, to);
}

}  // namespace ringlab::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <benchmark/benchmark.h>

#include <algorithm>
#include <random>
#include <vector>

#include "optimized/cpu/aligned_array.h"

namespace ringlab::cpu {
HWY_EXPORT(micro_width);
HWY_EXPORT(micro_scores);
HWY_EXPORT(micro_values);
HWY_EXPORT(micro_exp2);
HWY_EXPORT(micro_weigh);
HWY_EXPORT(micro_rescale);
HWY_EXPORT(micro_widen);
namespace {

constexpr std::int64_t kKeys = 32;  // 32 keys of 64 channels and a tile of scores fit into 32 KiB

constexpr std::int64_t kNumbers = 4096;

/// Random numbers between -1 and 0, seeded, aligned.
class Numbers {
 public:
  explicit Numbers(std::int64_t count) : count_(count), values_(aligned_array<float>(count)) {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> below_zero(-1, 0);
    std::generate(begin(), end(), [&] { return below_zero(random); });
  }
  float* data() const { return values_.get(); }
  float* begin() const { return data(); }
  float* end() const { return data() + count_; }

 private:
  std::int64_t count_;
  AlignedArray<float> values_;
};

void count_flops(benchmark::State& state, double flops) {
  state.counters["flop/s"] =
      benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
}

/// Keys by queries, 2 operations per channel.
void scores(benchmark::State& state) {
  const std::int64_t head_dim = state.range(0), width = HWY_DYNAMIC_DISPATCH(micro_width)();
  const Numbers keys(kKeys * head_dim), queries(head_dim * width), out(kKeys * width);
  for (auto _ : state) {
    HWY_DYNAMIC_DISPATCH(micro_scores)(keys.data(), queries.data(), kKeys, head_dim, out.data());
    benchmark::ClobberMemory();
  }
  count_flops(state, 2.0 * static_cast<double>(kKeys * head_dim * width));
}
BENCHMARK(scores)->Arg(64)->Arg(128);

/// Values by weights, the same number of operations.
void values(benchmark::State& state) {
  const std::int64_t head_dim = state.range(0), width = HWY_DYNAMIC_DISPATCH(micro_width)();
  const Numbers rows(kKeys * head_dim), weights(kKeys * width), sums(head_dim * width);
  for (auto _ : state) {
    HWY_DYNAMIC_DISPATCH(micro_values)(rows.data(), weights.data(), kKeys, head_dim, sums.data());
    benchmark::ClobberMemory();
  }
  count_flops(state, 2.0 * static_cast<double>(kKeys * head_dim * width));
}
BENCHMARK(values)->Arg(64)->Arg(128);

void exp2_of_floats(benchmark::State& state) {
  const Numbers from(kNumbers), to(kNumbers);
  for (auto _ : state) {
    HWY_DYNAMIC_DISPATCH(micro_exp2)(from.data(), kNumbers, to.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * kNumbers);
}
BENCHMARK(exp2_of_floats);

/// Scores become weights in place, so they are copied first; that is part of the time.
void weigh_scores(benchmark::State& state) {
  const std::int64_t width = HWY_DYNAMIC_DISPATCH(micro_width)();
  const Numbers fresh(kKeys * width), scores(kKeys * width), row_max(width), row_sum(width);
  for (auto _ : state) {
    std::copy(fresh.begin(), fresh.end(), scores.begin());
    HWY_DYNAMIC_DISPATCH(micro_weigh)(scores.data(), kKeys, row_max.data(), row_sum.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * kKeys * width);
}
BENCHMARK(weigh_scores);

void rescale_sums(benchmark::State& state) {
  const Numbers sums(kNumbers);
  for (auto _ : state) {
    HWY_DYNAMIC_DISPATCH(micro_rescale)(sums.data(), kNumbers);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * kNumbers);
}
BENCHMARK(rescale_sums);

void widen_bf16(benchmark::State& state) {
  std::vector<BFloat16> from;
  for (const float number : Numbers(kNumbers)) {
    from.push_back(static_cast<BFloat16>(number));
  }
  const Numbers to(kNumbers);
  for (auto _ : state) {
    benchmark::DoNotOptimize(HWY_DYNAMIC_DISPATCH(micro_widen)(from.data(), kNumbers, to.data()));
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * kNumbers);
}
BENCHMARK(widen_bf16);

}  // namespace
}  // namespace ringlab::cpu

BENCHMARK_MAIN();
#endif
