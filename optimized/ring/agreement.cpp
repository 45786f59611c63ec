#include "optimized/ring/agreement.h"

#include <array>
#include <cinttypes>
#include <cstdio>
#include <span>

#include "optimized/ring/host/message.h"
#include "reference/core/error.h"

namespace ringlab::ring {
namespace {

/// The smallest and the largest hash heard of, and a rank that has each.
struct Opinion {
  std::uint64_t least = 0, most = 0;
  std::int32_t rank_of_least = 0, rank_of_most = 0;
};
static_assert(sizeof(Opinion) == kAgreementBytes);

void take_in(Opinion& opinion, const Opinion& heard) {
  if (heard.least < opinion.least) {
    opinion.least = heard.least;
    opinion.rank_of_least = heard.rank_of_least;
  }
  if (heard.most > opinion.most) {
    opinion.most = heard.most;
    opinion.rank_of_most = heard.rank_of_most;
  }
}

std::string numbers(std::initializer_list<std::int64_t> values) {
  std::string text;
  for (const std::int64_t value : values) text += std::to_string(value) + ",";
  return text;
}

std::string layout_text(const Layout& layout) {
  std::string text;
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    for (const PositionRun& run : layout.positions(rank).runs()) {
      text += numbers({run.first, run.count, run.stride});
    }
    text += ";";
  }
  return text;
}

std::string exact(double value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%a", value);
  return text.data();
}

std::string bits_text(const Mask& mask) {
  std::string text;
  for (const MaskTerm& term : mask.terms()) {
    const BitMask* bits = std::get_if<BitMask>(&term);
    if (bits) text += std::to_string(checksum(std::as_bytes(std::span(*bits->bits)))) + ",";
  }
  return text;
}

}  // namespace

std::string agreement_text(const Problem& problem, const RunOptions& options, Pass last_pass) {
  const Shape& s = problem.shape;
  const Layout queries = make_layout(options, s.q_tokens, options.q_layout);
  const Layout keys = make_layout(options, s.kv_tokens, options.kv_layout);
  return "ringlab 1|" +
         numbers({s.batch, s.q_heads, s.kv_heads, s.q_tokens, s.kv_tokens, s.head_dim, s.v_dim}) +
         "|" + std::string(dtype_info(problem.dtype).name) + "|" + exact(problem.scale) + "|" +
         problem.mask.text() + "|" + bits_text(problem.mask) + "|" + layout_text(queries) + "|" +
         layout_text(keys) + "|" + modifiers_text(problem.modifiers) + "|" +
         schedule_name(schedule_spec(options)) + "|" +
         numbers({options.ranks, static_cast<int>(options.direction), options.slots,
                  static_cast<int>(options.wire), static_cast<int>(options.integrity),
                  options.tile_keys, static_cast<int>(last_pass), options.as_graph ? 1 : 0,
                  options.deterministic ? 1 : 0});
}

int agreement_messages(int ranks) {
  int rounds = 0;
  for (int distance = 1; distance < ranks; distance *= 2) ++rounds;
  return rounds;
}

std::uint64_t agree(const std::string& text, Communicator& network) {
  const std::uint64_t hash = checksum(std::as_bytes(std::span(text)));
  const int rank = network.rank(), ranks = network.ranks();
  Opinion opinion{hash, hash, rank, rank};
  int tag = 0;
  for (int distance = 1; distance < ranks; distance *= 2, ++tag) {
    const Opinion mine = opinion;
    Opinion heard;
    const Request in =
        network.post_receive((rank + ranks - distance) % ranks, tag, writable_bytes_of(&heard, 1));
    const Request out = network.post_send((rank + distance) % ranks, tag, bytes_of(&mine, 1));
    network.wait(in);
    network.wait(out);
    take_in(opinion, heard);
  }
  if (opinion.least == opinion.most) return hash;
  const int other = opinion.least == hash ? opinion.rank_of_most : opinion.rank_of_least;
  throw RankError({.rank = rank,
                   .suspect = other,
                   .operation = "agree with all ranks on the problem and the options",
                   .reason = "that ranks " + std::to_string(opinion.rank_of_least) + " and " +
                             std::to_string(opinion.rank_of_most) +
                             " were given different shapes, masks or options"});
}

}  // namespace ringlab::ring
