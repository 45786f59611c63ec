// The search for mistakes in the Hopper backward kernel.
#include <cmath>
#include <utility>

#include "tests/optimized/cuda/hopper/backward_hopper_kernels.h"
#include "tests/optimized/cuda/planted_mistakes.h"

namespace ringlab::cuda {
namespace {

/// Small problems that have everything: a group of heads, more tiles than stages, tails, blocks of
/// keys that tiles see in full, one after the other, in part, in their second half only, and by
/// one key only.
std::vector<KernelCase> small_cases() {
  const auto sizes = [](std::int64_t heads, std::int64_t queries, std::int64_t keys) {
    return Shape{.q_heads = heads,
                 .kv_heads = 1,
                 .q_tokens = queries,
                 .kv_tokens = keys,
                 .head_dim = 16,
                 .v_dim = 24};
  };
  return {{.shape = sizes(3, 140, 140), .mask = "causal"},
          {.shape = sizes(1, 300, 300), .mask = "window:0,64", .seed = 1},
          {.shape = sizes(1, 150, 150), .mask = "window:5,1", .seed = 2},
          {.shape = sizes(2, 384, 128), .seed = 3}};
}

}  // namespace

Hunt hunt_backward_hopper() {
  // dO of the first query, which sees the first key only, is NaN.
  const KernelCase causal{.shape = {.q_tokens = 40, .kv_tokens = 40, .head_dim = 16, .v_dim = 16},
                          .mask = "causal",
                          .seed = 6};
  return {.cases = small_cases(),
          .seeds = 6,
          .spoilt = {{causal, {Spoiler::Where::dout, 0, std::nan("")}}}};
}

BlockKernel planted_backward_hopper(BackwardFunction<BFloat16> run) {
  BlockKernel kernel = backward_kernel(std::move(run));
  kernel.orders = {false};
  return kernel;
}

std::vector<PlantedMistake> kernels_as_they_are() {
  return {{"the kernel", "", planted_backward_hopper(&emulated_backward_hopper<BFloat16>),
           hunt_backward_hopper()}};
}

}  // namespace ringlab::cuda
