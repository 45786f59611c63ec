// The search for mistakes in the portable kernels.
#include "tests/optimized/cuda/planted_mistakes.h"

namespace ringlab::cuda {
namespace {

/// Small problems that have everything: groups of heads, several chunks, tails, rows that see
/// nothing at first, maxima that come late.
std::vector<KernelCase> cases(int channels) {
  const std::int64_t widest = channels > 128 ? 136 : 24;
  const Shape grouped{.batch = 2,
                      .q_heads = 4,
                      .kv_heads = 2,
                      .q_tokens = 70,
                      .kv_tokens = 70,
                      .head_dim = widest,
                      .v_dim = 16};
  const Shape one_head{.q_tokens = 150, .kv_tokens = 193, .head_dim = widest, .v_dim = 40};
  return {
      {.shape = grouped, .mask = "causal", .layout = LayoutKind::striped, .ranks = 1},
      {.shape = one_head, .inputs = InputKind::late_maxima, .seed = 1},
      {.shape = one_head, .mask = "causal", .seed = 2},
      {.shape = one_head, .mask = "causal", .layout = LayoutKind::zigzag, .ranks = 2, .seed = 3},
      {.shape = one_head, .mask = "window:0,0", .seed = 4},
      {.shape = one_head, .mask = "documents:65,128", .seed = 5}};
}

}  // namespace

Hunt hunt_portable(int channels) { return {.cases = cases(channels), .seeds = 3}; }

std::vector<PlantedMistake> kernels_as_they_are() {
  std::vector<PlantedMistake> all;
  for (const int channels : {64, 256}) {
    Hunt hunt = hunt_portable(channels);
    hunt.seeds = 1;  // all orders of threads are cuda_portable_test's
    all.push_back({std::to_string(channels) + " channels", "",
                   portable_kernel(portable_kernels<BFloat16>()), hunt});
  }
  return all;
}

}  // namespace ringlab::cuda
