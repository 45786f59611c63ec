// The search for mistakes in the Hopper kernel.
#include <cmath>

#include "tests/optimized/cuda/planted_mistakes.h"

namespace ringlab::cuda {
namespace {

/// Small problems that have everything: groups of heads, several tiles for a thread block, several
/// chunks, more blocks of keys than stages, tails, rows that see nothing, maxima that the kernel,
/// which walks backwards, meets late.
std::vector<KernelCase> small_cases() {
  const Shape grouped{.batch = 2,
                      .q_heads = 4,
                      .kv_heads = 2,
                      .q_tokens = 70,
                      .kv_tokens = 70,
                      .head_dim = 24,
                      .v_dim = 16};
  const Shape one_head{.q_tokens = 250, .kv_tokens = 700, .head_dim = 24, .v_dim = 40};
  // Nothing is hidden, so no row is done again: what was read too early, as NaN, stays. Two tiles.
  const Shape all_full{.q_tokens = 200, .kv_tokens = 256, .head_dim = 24, .v_dim = 40};
  const Shape two_heads{
      .q_heads = 2, .q_tokens = 200, .kv_tokens = 520, .head_dim = 24, .v_dim = 16};
  return {{.shape = all_full},
          {.shape = two_heads, .seed = 8},
          {.shape = grouped, .mask = "causal"},
          {.shape = one_head, .inputs = InputKind::early_maxima, .seed = 1},
          {.shape = one_head, .mask = "causal", .seed = 2},
          {.shape = one_head,
           .mask = "causal",
           .ranks = 3,
           .inputs = InputKind::early_maxima,
           .seed = 3},
          {.shape = one_head, .mask = "window:300,200", .seed = 4},
          {.shape = one_head, .mask = "documents:165,535", .seed = 5}};
}

PlantedMistake as_it_is(const char* name, const EmulatedHopper<BFloat16>& run,
                        std::int64_t heads_together) {
  Hunt hunt = hunt_forward_hopper(heads_together);
  hunt.seeds = 4;
  return {name, "", forward_hopper_kernel(run), hunt};
}

}  // namespace

Hunt hunt_forward_hopper(std::int64_t heads_together) {
  Hunt hunt{.cases = small_cases(), .seeds = 18};
  std::erase_if(hunt.cases, [&](const KernelCase& c) {
    return c.shape.q_heads / c.shape.kv_heads % heads_together != 0;
  });
  if (heads_together > 1) return hunt;
  // V of the last key, which only the last row sees, is NaN.
  const KernelCase causal{.shape = {.q_tokens = 150, .kv_tokens = 150, .head_dim = 16, .v_dim = 16},
                          .mask = "causal",
                          .seed = 6};
  hunt.spoilt = {{causal, {Spoiler::Where::v, 149, std::nan("")}}};
  return hunt;
}

std::vector<PlantedMistake> kernels_as_they_are() {
  return {as_it_is("the kernel", &emulated_forward_hopper<BFloat16>, 1),
          as_it_is("tactics", &emulated_tactical_hopper, 1),
          as_it_is("pairs of heads", &emulated_paired_hopper, 2)};
}

}  // namespace ringlab::cuda
