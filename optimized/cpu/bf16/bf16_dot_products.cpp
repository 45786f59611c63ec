#include "optimized/cpu/bf16/bf16_dot_products.h"

namespace ringlab::cpu::bf16_dot {

const Products kDotProducts = {.score = score,
                               .add_weighted = add_weighted,
                               .add_over_queries = add_over_queries,
                               .pack_values = pack_values,
                               .pairs = 1,
                               .keys = kKeysAtOnce,
                               .rows = 1,
                               .panel = kPanel,
                               .groups = 2,
                               .begin = nullptr,
                               .end = nullptr};

}  // namespace ringlab::cpu::bf16_dot
