// Builds without NCCL's header.
#include <memory>

#include "optimized/bench/gpu/gpu_works.h"
#include "reference/core/error.h"

namespace ringlab::bench {

std::unique_ptr<HopCopies> make_nccl_copies(int, std::int64_t, int) {
  throw_environment_error({.where = "ringlab_goals gpu",
                           .expected = "a build with NCCL",
                           .actual = "one without it",
                           .hint = "Configure with -DRINGLAB_NCCL=ON where nccl.h is installed."});
}

}  // namespace ringlab::bench
