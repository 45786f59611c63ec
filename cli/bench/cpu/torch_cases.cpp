#include "cli/bench/cpu/torch_cases.h"

#include <fmt/format.h>

#include "reference/core/schedule/operation_words.h"

namespace ringlab::bench {

std::string TorchCase::id() const {
  return fmt::format("{}.{}.{}.d{}.t{}", pass_name(pass), dtype_info(dtype).name, mask, head_dim,
                     threads);
}

std::string TorchCase::text() const {
  return fmt::format("{} {} {}, head_dim {}, threads: {}", pass_name(pass), dtype_info(dtype).name,
                     mask, head_dim, threads);
}

std::string TorchCase::request(std::int64_t heads, std::int64_t tokens) const {
  return fmt::format("{} {} {} {} {} {} {}", pass_name(pass), dtype_info(dtype).name, mask, heads,
                     tokens, head_dim, threads);
}

std::vector<TorchCase> torch_cases() {
  std::vector<TorchCase> cases;
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      for (const char* mask : {"full", "causal"}) {
        for (const std::int64_t head_dim : {128, 64}) {
          for (const int threads : {1, 2}) cases.push_back({pass, dtype, mask, head_dim, threads});
        }
      }
    }
  }
  return cases;
}

}  // namespace ringlab::bench
