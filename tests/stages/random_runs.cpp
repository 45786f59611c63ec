#include "tests/stages/random_runs.h"

#include <sstream>

namespace ringlab::stages::testing {

Shape RandomRuns::shape() {
  const std::int64_t kv_heads = 1 + below(3), group = 1 + below(3);
  return {.batch = 1 + below(2),
          .q_heads = kv_heads * group,
          .kv_heads = kv_heads,
          .q_tokens = below(24),
          .kv_tokens = below(24),
          .head_dim = 1 + below(9),
          .v_dim = 1 + below(9)};
}

std::string RandomRuns::mask(const Shape& s) {
  switch (below(7)) {
    case 0:
      return "full";
    case 1:
      return "causal";
    case 2:
      return "window:" + std::to_string(below(6)) + "," + std::to_string(below(3));
    case 3:
      return "prefix:" + std::to_string(below(9));
    case 4:
      return "causal+window:3,inf";
    default:
      break;
  }
  const std::int64_t first = below(s.kv_tokens + 1), second = below(s.kv_tokens - first + 1);
  return "documents:" + std::to_string(first) + ",0," + std::to_string(second) + "," +
         std::to_string(s.kv_tokens - first - second) + (below(2) == 1 ? "+causal" : "");
}

BitMask RandomRuns::bits(const Shape& s) {
  std::vector<std::uint8_t> values;
  for (std::int64_t i = 0; i < s.q_tokens; ++i) {
    const bool empty_row = below(5) == 0;
    for (std::int64_t j = 0; j < s.kv_tokens; ++j) values.push_back(!empty_row && below(2) == 1);
  }
  return {.q_tokens = s.q_tokens,
          .kv_tokens = s.kv_tokens,
          .bits = std::move(values),
          .source = "random"};
}

RunOptions RandomRuns::options() {
  RunOptions o;
  o.ranks = static_cast<int>(1 + below(7));
  o.layout = static_cast<LayoutKind>(below(3));
  o.direction = static_cast<RingDirection>(below(2));
  o.transport = static_cast<TransportKind>(below(2));
  o.delay_seed = seed();
  o.rendezvous = below(2) == 1;
  o.tile_queries = 1 + below(9);
  o.tile_keys = 1 + below(9);
  o.thread_order_seed = seed();
  o.node_ranks = static_cast<int>(1 + below(4));
  return o;
}

Layout RandomRuns::uneven_layout(std::int64_t tokens, int ranks) {
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(ranks), 0);
  for (std::int64_t& length : lengths) tokens -= length = below(tokens + 1);
  lengths[static_cast<std::size_t>(below(ranks))] += tokens;
  return Layout::with_lengths(lengths);
}

std::string describe(const Problem& problem, const RunOptions& options) {
  const Shape& s = problem.shape;
  std::ostringstream text;
  text << problem.mask.text() << " " << dtype_info(problem.dtype).name << ", batch " << s.batch
       << ", heads " << s.q_heads << "/" << s.kv_heads << ", tokens " << s.q_tokens << "/"
       << s.kv_tokens << ", d " << s.head_dim << "/" << s.v_dim << ", ranks " << options.ranks
       << " " << layout_name(options.layout) << ", tiles " << options.tile_queries << "x"
       << options.tile_keys;
  return text.str();
}

}  // namespace ringlab::stages::testing
