#include "optimized/bench/gpu/gpu_case.h"

#include <fmt/format.h>

#include "optimized/bench/measure/torch_peer.h"

namespace ringlab::bench {

std::int64_t GpuCase::pairs() const {
  return mask == "causal" ? tokens * (tokens + 1) / 2 : tokens * tokens;
}

double GpuCase::flops() const {
  const double products = pass == Pass::forward ? 2 : 5;
  return products * 2 * static_cast<double>(q_heads * head_dim) * static_cast<double>(pairs());
}

std::int64_t GpuCase::kv_bytes() const {
  constexpr std::int64_t kBytes = 2;
  return 2 * kv_heads * tokens * head_dim * kBytes;
}

std::string GpuCase::text() const {
  return fmt::format("{}, {} tokens, head_dim {}", mask, tokens_text(tokens), head_dim);
}

std::string GpuCase::request(const std::string& backend) const {
  return torch_request({.pass = pass,
                        .dtype = DType::bf16,
                        .mask = mask,
                        .head_dim = head_dim,
                        .heads = q_heads,
                        .tokens = tokens,
                        .queries = tokens},
                       {.kv_heads = kv_heads, .how = backend});
}

double matrix_flops(std::int64_t n) {
  const auto side = static_cast<double>(n);
  return 2 * side * side * side;
}

std::string tokens_text(std::int64_t tokens) {
  return tokens % 1024 == 0 && tokens > 0 ? fmt::format("{}k", tokens / 1024)
                                          : fmt::format("{}", tokens);
}

}  // namespace ringlab::bench
