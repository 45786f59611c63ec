// The map of a mask under a layout: which rank computes which block of pairs at which hop.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/report/maps.h"
#include "cli/report/svg.h"

namespace ringlab::report {
namespace {

constexpr double kMapWidth = 360, kMapLeft = 52, kMapTop = 34, kSide = kMapWidth - kMapLeft - 2;
constexpr std::int64_t kSamples = 12;  // per side of a cell, for its share of visible pairs

// Part `part` of `parts` of a chunk, thinned to at most kSamples positions.
Positions sample_part(const Positions& chunk, int part, int parts) {
  const std::int64_t begin = chunk.size() * part / parts, end = chunk.size() * (part + 1) / parts;
  const std::int64_t step = std::max<std::int64_t>(1, (end - begin + kSamples - 1) / kSamples);
  std::vector<std::int64_t> list;
  for (std::int64_t i = begin; i < end; i += step) list.push_back(chunk[i]);
  return Positions::from_list(list);
}

double visible_share(const Mask& mask, const Positions& queries, const Positions& keys) {
  const std::int64_t pairs = queries.size() * keys.size();
  if (pairs == 0) return 0;
  return static_cast<double>(mask.count(queries, keys)) / static_cast<double>(pairs);
}

struct MapBlock {
  int rank, owner, hop, ranks;
  Box box;
};

std::string shade(const MapBlock& block, double share) {
  return fmt::format("{};opacity:{:.2f}", hop_style(block.hop, block.ranks), 0.25 + 0.75 * share);
}

// Draws a block that is partly visible in cells, each with the share of its pairs that are visible.
void draw_cells(Svg& svg, const Mask& mask, const Positions& queries, const Positions& keys,
                const MapBlock& block) {
  const int parts = std::clamp(48 / block.ranks, 1, 12);
  const double width = block.box.width / parts, height = block.box.height / parts;
  std::vector<Positions> columns;
  columns.reserve(static_cast<std::size_t>(parts));
  for (int x = 0; x < parts; ++x) columns.push_back(sample_part(keys, x, parts));
  for (int y = 0; y < parts; ++y) {
    const Positions row = sample_part(queries, y, parts);
    const auto share_of = [&](int x) {
      return visible_share(mask, row, columns[static_cast<std::size_t>(x)]);
    };
    // Neighbours of one shade are one rectangle.
    for (int begin = 0, end = 0; begin < parts; begin = end) {
      const double share = share_of(begin);
      for (end = begin + 1; end < parts && share_of(end) == share;) ++end;
      if (share == 0) continue;
      svg.rect(
          {block.box.x + begin * width, block.box.y + y * height, (end - begin) * width, height},
          "hop cell", shade(block, share));
    }
  }
}

void draw_block(Svg& svg, const Mask& mask, const Positions& queries, const Positions& keys,
                const MapBlock& block) {
  svg.rect(block.box, "empty");
  const Coverage coverage = mask.classify(queries, keys);
  if (coverage == Coverage::full) svg.rect(block.box, "hop", shade(block, 1));
  if (coverage == Coverage::partial) draw_cells(svg, mask, queries, keys, block);
}

std::string coverage_text(const Mask& mask, const Positions& queries, const Positions& keys) {
  switch (mask.classify(queries, keys)) {
    case Coverage::empty:
      return "empty";
    case Coverage::full:
      return "full";
    case Coverage::partial:
      break;
  }
  const double share = visible_share(mask, queries, keys);
  return fmt::format("partial, {:.0f} % visible", 100 * share);
}

void draw_axes(Svg& svg, int ranks, double block) {
  svg.text(kMapLeft, 11, "key/value tokens, held by rank", "small");
  const int every = ranks > 12 ? 4 : 1;
  for (int r = 0; r < ranks; r += every) {
    svg.text(kMapLeft + block * (r + 0.5), 27, fmt::format("{}", r), "small", "middle");
    svg.text(kMapLeft - 6, kMapTop + block * (r + 0.5) + 4, fmt::format("rank {}", r), "small",
             "end");
  }
}

}  // namespace

std::string layout_map(const Mask& mask, const Layout& queries, const Layout& keys,
                       RingDirection direction) {
  const int ranks = queries.ranks();
  const double side = kSide / ranks;
  Svg svg(kMapWidth, kMapTop + kSide + 2,
          fmt::format("{} layout over {} ranks, mask {}", layout_name(queries.kind()), ranks,
                      mask.text()));
  draw_axes(svg, ranks, side);
  for (int rank = 0; rank < ranks; ++rank) {
    for (int owner = 0; owner < ranks; ++owner) {
      const int away = direction == RingDirection::next ? rank - owner : owner - rank;
      const int hop = (away + ranks) % ranks;
      const MapBlock block{
          rank, owner, hop, ranks, {kMapLeft + side * owner, kMapTop + side * rank, side, side}};
      const Positions &q = queries.positions(rank), &k = keys.positions(owner);
      draw_block(svg, mask, q, k, block);
      svg.rect(block.box, "frame", "",
               fmt::format("rank {} with the keys of rank {}, hop {}: {}", rank, owner, hop,
                           coverage_text(mask, q, k)));
      if (side >= 26) {
        svg.text(block.box.x + 5, block.box.y + 13, fmt::format("{}", hop), "hopnumber");
      }
    }
  }
  return svg.finish();
}

}  // namespace ringlab::report
