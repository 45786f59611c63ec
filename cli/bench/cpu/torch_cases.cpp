#include "cli/bench/cpu/torch_cases.h"

#include <fmt/format.h>

#include "reference/core/schedule/operation_words.h"

namespace ringlab::bench {

std::string TorchCase::id() const {
  if (decoded > 0) {
    return fmt::format("decode{}.{}.d{}.h{}.t{}", decoded, dtype_info(dtype).name, head_dim, heads,
                       threads);
  }
  return fmt::format("{}.{}.{}.d{}.t{}", pass_name(pass), dtype_info(dtype).name, mask, head_dim,
                     threads);
}

std::string TorchCase::text() const {
  if (decoded > 0) {
    return fmt::format("queries against {} keys: {}, {}, head_dim {}, heads: {}, threads: {}",
                       kDecodedTokens, decoded, dtype_info(dtype).name, head_dim, heads, threads);
  }
  return fmt::format("{} {} {}, head_dim {}, threads: {}", pass_name(pass), dtype_info(dtype).name,
                     mask, head_dim, threads);
}

std::string TorchCase::request(std::int64_t queries, std::int64_t tokens) const {
  return fmt::format("{} {} {} {} {} {} {} {}", pass_name(pass), dtype_info(dtype).name, mask,
                     heads, queries, tokens, head_dim, threads);
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
  for (const std::int64_t heads : {1, 8}) {
    cases.push_back({.head_dim = 64, .threads = 2, .heads = heads, .decoded = 1});
  }
  cases.push_back({.dtype = DType::bf16, .threads = 2, .decoded = 1});
  return cases;
}

}  // namespace ringlab::bench
