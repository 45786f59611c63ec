#include "optimized/bench/cpu/widths.h"

#include <memory>
#include <utility>

#include "optimized/bench/cpu/attention_work.h"
#include "optimized/bench/cpu/peak_loop.h"

namespace ringlab::bench {
namespace {

const std::vector<std::int64_t> kHeadDims = {1,  8,  16, 17,  31,  32,  64,
                                             65, 80, 96, 127, 128, 192, 256};

template <class Element>
std::vector<PeakShare> forward_and_backward(PeakOperation operation, std::int64_t head_dim,
                                            const WidthOptions& options) {
  const auto work = std::make_shared<AttentionWork<Element>>(
      AttentionSizes{.queries = options.tokens, .tokens = options.tokens, .head_dim = head_dim});
  return shares_of_peak(
      operation,
      {{"forward", work->forward_flops(), [work] { work->run_kernel(); }},
       {"backward", work->backward_flops(), [work] { work->run_backward_kernel(); }}},
      {.rounds = options.rounds});
}

void add(const std::vector<PeakShare>& shares, WidthKernel& forward, WidthKernel& backward) {
  forward.shares.push_back(shares[0].share);
  backward.shares.push_back(shares[1].share);
}

}  // namespace

Widths measure_widths(const WidthOptions& options) {
  const PeakOperation of_bf16 = operation_for_bf16();
  const std::string f32 = name_of(PeakOperation::f32_fma), bf16 = name_of(of_bf16);
  WidthKernel forward{"f32 forward", f32, {}}, backward{"f32 backward", f32, {}},
      forward16{"bf16 forward", bf16, {}}, backward16{"bf16 backward", bf16, {}};
  double done = 0;
  for (const std::int64_t head_dim : kHeadDims) {
    add(forward_and_backward<float>(PeakOperation::f32_fma, head_dim, options), forward, backward);
    add(forward_and_backward<BFloat16>(of_bf16, head_dim, options), forward16, backward16);
    done += 1;
    if (options.progress) options.progress(done / static_cast<double>(kHeadDims.size()));
  }
  return {kHeadDims,
          {std::move(forward), std::move(backward), std::move(forward16), std::move(backward16)}};
}

}  // namespace ringlab::bench
