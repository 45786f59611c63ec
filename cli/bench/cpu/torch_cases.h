// The problems on which PyTorch is the peer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reference/core/dtype.h"
#include "reference/core/schedule/schedule.h"

namespace ringlab::bench {

struct TorchCase {
  Pass pass = Pass::forward;
  DType dtype = DType::f32;
  std::string mask = "full";  ///< or "causal"
  std::int64_t head_dim = 128;
  int threads = 1;
  std::int64_t heads = 8;
  std::int64_t decoded = 0;  ///< queries against kDecodedTokens; 0: as many queries as tokens

  /// "backward.bf16.causal.d64.t2", or "decode1.f32.d64.h8.t2"
  std::string id() const;
  /// The case in words.
  std::string text() const;
  /// The line that asks the peer for the case.
  std::string request(std::int64_t queries, std::int64_t tokens) const;
};

/// Keys that queries are decoded against.
inline constexpr std::int64_t kDecodedTokens = 65536;

/// Both passes, f32 and bf16, full and causal, head_dim 128 and 64, one thread and two; decoding of
/// one query: one head and eight in f32, head_dim 64, and eight in bf16, head_dim 128.
std::vector<TorchCase> torch_cases();

}  // namespace ringlab::bench
