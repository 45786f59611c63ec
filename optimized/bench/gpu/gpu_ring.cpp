#include <algorithm>
#include <vector>

#include "optimized/bench/cpu/attention_work.h"
#include "optimized/bench/gpu/gpu_attention.h"
#include "optimized/bench/gpu/gpu_works.h"
#include "optimized/ring/engine.h"
#include "optimized/ring/streams/device_kernels.h"

namespace ringlab::bench {
namespace {

using Element = BFloat16;

/// All ranks have the same random numbers, q, k and v different ones: which they are does not
/// matter for the time, and there are fewer to make.
class Ring {
 public:
  Ring(const GpuCase& one, int ranks, double timeout_s)
      : problem_(problem_of(one)),
        timeout_s_(timeout_s),
        options_(options_of(ranks)),
        kernels_(ring::device_kernels<Element>(ring::choose_kernels(problem_, options_, 1).forward,
                                               problem_.shape)),
        kernel_(kernel_name(one, options_)),
        numbers_(repeated(one.q_heads * rows_of_a_rank(one.tokens) * one.head_dim + kPeriod)) {}

  const std::string& kernel() const { return kernel_; }
  double seconds(RingClock clock) const {
    const ring::Ends<Element> ends{
        .source = [this](const ring::RankTokens& tokens) { return rows(tokens); },
        .sink = [](const ring::RankTokens&, ring::RankResult<Element>&&) {}};
    const bool by_device = clock == RingClock::device;
    const ring::OnStreams<Element> place(
        kernels_, {.devices = 1,
                   .begins = by_device ? ring::RunBegins::when_issued : ring::RunBegins::at_once,
                   .timeout_s = timeout_s_});
    const ring::RunSummary summary = ring::Engine().run(problem_, options_, ends, place);
    return by_device ? summary.device_seconds : summary.seconds;
  }

 private:
  static constexpr std::int64_t kPeriod = 1'000'003;  // prime: rows repeat at other channels

  static RunOptions options_of(int ranks) {
    RunOptions options{.ranks = ranks, .layout = LayoutKind::zigzag};
    options.device = DeviceKind::cuda;
    return options;
  }
  std::int64_t rows_of_a_rank(std::int64_t tokens) const {
    return make_layout(options_, tokens, {}).largest_chunk();
  }
  static std::vector<Element> repeated(std::int64_t count) {
    const std::vector<Element> period = normal_values<Element>(kPeriod, 1);
    std::vector<Element> all(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = period[i % period.size()];
    return all;
  }
  TensorView<const Element> view(std::int64_t heads, std::int64_t rows, std::int64_t first) const {
    return dense_view(numbers_.data() + first, {1, heads, rows, problem_.shape.head_dim});
  }
  ring::RankRows<Element> rows(const ring::RankTokens& tokens) const {
    const Shape& s = problem_.shape;
    return {.q = view(s.q_heads, tokens.queries.size(), 0),
            .k = view(s.kv_heads, tokens.keys.size(), kPeriod / 3),
            .v = view(s.kv_heads, tokens.keys.size(), 2 * kPeriod / 3)};
  }

  const Problem problem_;
  const double timeout_s_;
  const RunOptions options_;
  const ring::DeviceKernels<Element> kernels_;
  const std::string kernel_;
  const std::vector<Element> numbers_;
};

}  // namespace

GpuWork make_ring(const GpuCase& one, int ranks, RingClock clock, double timeout_s) {
  const auto ring = std::make_shared<Ring>(one, ranks, timeout_s);
  return {ring->kernel(), [ring, clock] { return ring->seconds(clock); }};
}

}  // namespace ringlab::bench
