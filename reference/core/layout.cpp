#include "reference/core/layout.h"

#include <algorithm>
#include <string>
#include <utility>

#include "reference/core/error.h"

namespace ringlab {
namespace {

/// Chunk `index` of `chunks` nearly equal ones; the first tokens % chunks hold one token more.
PositionRun chunk_run(std::int64_t tokens, std::int64_t chunks, std::int64_t index) {
  const std::int64_t length = tokens / chunks;
  const std::int64_t longer = tokens % chunks;
  return {index * length + std::min(index, longer), length + (index < longer ? 1 : 0), 1};
}

Positions rank_positions(LayoutKind kind, std::int64_t tokens, std::int64_t ranks,
                         std::int64_t rank) {
  switch (kind) {
    case LayoutKind::contiguous:
      break;
    case LayoutKind::striped:
      // Deals tokens out in turn: every ranks-th token from number `rank` on.
      return Positions({{rank, tokens / ranks + (rank < tokens % ranks ? 1 : 0), ranks}});
    // Two chunks of 2 · ranks, one from each end: under a causal mask all ranks
    // have about the same work.
    case LayoutKind::zigzag:
      return Positions(
          {chunk_run(tokens, 2 * ranks, rank), chunk_run(tokens, 2 * ranks, 2 * ranks - 1 - rank)});
  }
  return Positions({chunk_run(tokens, ranks, rank)});
}

[[noreturn]] void throw_not_a_partition(std::int64_t tokens, std::size_t rank,
                                        std::int64_t position, const std::string& why) {
  throw_input_error(
      {.where = "layout",
       .expected = "parts that hold each of 0 … " + std::to_string(tokens - 1) + " exactly once",
       .actual = "position " + std::to_string(position) + " of rank " + std::to_string(rank) + " " +
                 why});
}

}  // namespace

LayoutKind parse_layout(std::string_view name) {
  if (const auto kind = kind_named<LayoutKind, layout_name>(name)) return *kind;
  throw_usage_error({.where = "layout",
                     .expected = one_of_kinds<LayoutKind, layout_name>(),
                     .actual = "\"" + std::string(name) + "\""});
}

Layout::Layout(LayoutKind kind, std::int64_t tokens, int ranks) : kind_(kind), tokens_(tokens) {
  if (ranks < 1) {
    throw_usage_error(
        {.where = "ranks", .expected = "at least 1", .actual = std::to_string(ranks)});
  }
  if (tokens < 0) {
    throw_input_error(
        {.where = "layout", .expected = "tokens >= 0", .actual = std::to_string(tokens)});
  }
  parts_.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    parts_.push_back(rank_positions(kind, tokens, ranks, rank));
  }
}

Layout Layout::with_lengths(const std::vector<std::int64_t>& lengths) {
  if (lengths.empty()) {
    throw_usage_error(
        {.where = "ranks", .expected = "at least one chunk length", .actual = "none"});
  }
  Layout layout;
  // Lengths follow each other; a rank may hold none.
  for (const std::int64_t length : lengths) {
    const std::int64_t first = layout.tokens_;
    if (length < 0 || __builtin_add_overflow(first, length, &layout.tokens_)) {
      throw_input_error({.where = "layout",
                         .expected = "chunk lengths >= 0 with a sum below 2^63",
                         .actual = std::to_string(length)});
    }
    layout.parts_.push_back(Positions({{first, length, 1}}));
  }
  return layout;
}

Layout Layout::from_parts(std::vector<Positions> parts) {
  if (parts.empty()) {
    throw_usage_error({.where = "ranks", .expected = "at least one part", .actual = "none"});
  }
  // Checks that positions are as many as tokens, below their number and none twice: each once.
  Layout layout;
  for (const Positions& part : parts) layout.tokens_ += part.size();
  std::vector<bool> seen(static_cast<std::size_t>(layout.tokens_));  // bits, one per position
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    for (const std::int64_t position : parts[rank].to_list()) {
      const auto index = static_cast<std::size_t>(position);
      if (position >= layout.tokens_) {
        throw_not_a_partition(layout.tokens_, rank, position, "is outside");
      }
      if (seen[index]) throw_not_a_partition(layout.tokens_, rank, position, "is held twice");
      seen[index] = true;
    }
  }
  layout.parts_ = std::move(parts);
  return layout;
}

std::int64_t Layout::largest_chunk() const {
  std::int64_t largest = 0;
  for (const Positions& part : parts_) largest = std::max(largest, part.size());
  return largest;
}

}  // namespace ringlab
