#include "cli/compare/ways.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/compare/pooled.h"
#include "reference/core/mask_text.h"

namespace ringlab::cli {
namespace {

/// Windows and blocks of the approximations have 1/kShare of the tokens; a mean stands for kGroup.
constexpr std::int64_t kShare = 8, kGroup = 16;

RunOptions on_ranks(int ranks, LayoutKind layout = LayoutKind::contiguous) {
  RunOptions options;
  options.ranks = ranks;
  options.layout = layout;
  return options;
}

RunOptions with_schedule(RunOptions options, ScheduleKind kind, int node_ranks = 1) {
  options.schedule = kind;
  options.node_ranks = node_ranks;
  return options;
}

/// The problem's mask and that of `words` together.
Mask narrowed(const Problem& problem, const std::string& words) {
  std::vector<MaskTerm> terms = problem.mask.terms();
  const Mask more = parse_mask(words);
  terms.insert(terms.end(), more.terms().begin(), more.terms().end());
  return Mask(terms).bind(problem.shape.q_tokens, problem.shape.kv_tokens);
}

/// The words of a mask of documents: `tokens` tokens in kShare equal parts.
std::string documents_of(std::int64_t tokens) {
  std::string words;
  for (std::int64_t part = 0; part < kShare; ++part) {
    const std::int64_t length = tokens * (part + 1) / kShare - tokens * part / kShare;
    if (length > 0) words += fmt::format("{}{}", words.empty() ? "documents:" : ",", length);
  }
  return words;
}

}  // namespace

std::vector<Way> ways_of(const Problem& problem, int ranks) {
  const std::int64_t keys = problem.shape.kv_tokens,
                     near = std::max<std::int64_t>(keys / kShare, 1);
  const RunOptions zigzag = on_ranks(ranks, LayoutKind::zigzag);
  RunOptions narrow = zigzag;
  narrow.wire = WireFormat::fp8;
  std::vector<Way> ways = {
      {"one device", "optimized", on_ranks(1)},
      {"broadcast, all scores", "broadcast", on_ranks(ranks)},
      {"all-gather", "optimized", with_schedule(zigzag, ScheduleKind::allgather)},
      {"all-to-all over heads", "heads", on_ranks(ranks)},
      {"ring, contiguous", "optimized", on_ranks(ranks)},
      {"ring, striped", "optimized", on_ranks(ranks, LayoutKind::striped)},
      {"ring, zigzag", "optimized", zigzag},
      {"both ways, zigzag", "optimized", with_schedule(zigzag, ScheduleKind::bidirectional)}};
  if (ranks >= 4) {
    ways.push_back({"ring of rings, zigzag", "optimized",
                    with_schedule(zigzag, ScheduleKind::double_ring, ranks / 2)});
  }
  ways.push_back({"ring, zigzag, fp8 wire", "optimized", narrow});
  for (Way& way : ways) {
    way.mask = problem.mask;
    way.by_heads = way.subject == "heads";
  }
  ways.push_back({fmt::format("window of {}", near), "documents_and_windows", on_ranks(ranks),
                  narrowed(problem, fmt::format("window:{},{}", near, near)), true});
  if (problem.shape.q_tokens == keys) {
    ways.push_back({fmt::format("blocks of {} alone", near), "documents_and_windows",
                    on_ranks(ranks), narrowed(problem, documents_of(keys)), true});
  }
  if (ranks > 1 && can_be_pooled(problem)) {
    ways.push_back({fmt::format("means of {} beyond a chunk", kGroup), "pooled", on_ranks(ranks),
                    problem.mask, true, false, kGroup});
  }
  return ways;
}

}  // namespace ringlab::cli
