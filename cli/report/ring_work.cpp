// The work of each rank at each hop, and its chart.
#include <fmt/format.h>

#include <algorithm>

#include "cli/report/maps.h"
#include "cli/report/svg.h"

namespace ringlab::report {

double RingWork::busy_fraction() const {
  if (pairs.empty()) return 1;
  double done = 0, possible = 0;
  for (std::size_t hop = 0; hop < pairs.front().size(); ++hop) {
    std::int64_t busiest = 0;
    for (const auto& rank : pairs) {
      done += static_cast<double>(rank[hop]);
      busiest = std::max(busiest, rank[hop]);
    }
    possible += static_cast<double>(busiest) * ranks;
  }
  return possible > 0 ? done / possible : 1;
}

RingWork ring_work(const Mask& mask, const Layout& queries, const Layout& keys,
                   RingDirection direction) {
  const int ranks = queries.ranks();
  RingWork work{ranks, {}};
  for (int rank = 0; rank < ranks; ++rank) {
    auto& row = work.pairs.emplace_back();
    for (int hop = 0; hop < ranks; ++hop) {
      const int from = direction == RingDirection::next ? ranks - hop : hop;
      row.push_back(mask.count(queries.positions(rank), keys.positions((rank + from) % ranks)));
    }
  }
  return work;
}

RingWork measured_work(const RunResult& run) {
  RingWork work{static_cast<int>(run.ranks.size()), {}};
  int hops = 1;
  for (const RankStats& rank : run.ranks) {
    for (const Visit& visit : rank.visits) hops = std::max(hops, visit.hop + 1);
  }
  for (const RankStats& rank : run.ranks) {
    auto& row = work.pairs.emplace_back(static_cast<std::size_t>(hops), 0);
    for (const Visit& visit : rank.visits) {
      if (visit.hop >= 0) row[static_cast<std::size_t>(visit.hop)] += visit.pairs;
    }
  }
  return work;
}

std::string work_chart(const RingWork& work) {
  constexpr double kWidth = 360, kLabels = 52, kTop = 16, kGap = 3;
  const int hops = work.pairs.empty() ? 0 : static_cast<int>(work.pairs.front().size());
  const double row_height = std::clamp(120.0 / std::max(work.ranks, 1), 8.0, 22.0);
  const double column = (kWidth - kLabels) / std::max(hops, 1);
  std::int64_t busiest = 1;
  for (const auto& row : work.pairs)
    busiest = std::max(busiest, *std::max_element(row.begin(), row.end()));
  Svg svg(kWidth, kTop + row_height * work.ranks + 2, "pairs computed by each rank at each hop");
  const int label_every = std::max(1, (hops * 30 + 307) / 308);
  for (int hop = 0; hop < hops; hop += label_every) {
    svg.text(kLabels + column * hop, 11, hop == 0 ? "hop 0" : fmt::format("{}", hop), "small");
  }
  for (int rank = 0; rank < work.ranks; ++rank) {
    const double y = kTop + row_height * rank;
    if (row_height >= 11 || rank % 2 == 0) {
      svg.text(kLabels - 6, y + row_height / 2 + 3.5, fmt::format("rank {}", rank), "small", "end");
    }
    for (int hop = 0; hop < hops; ++hop) {
      const std::int64_t pairs =
          work.pairs[static_cast<std::size_t>(rank)][static_cast<std::size_t>(hop)];
      const Box box{kLabels + column * hop, y + 1, std::max(column - kGap, 1.0), row_height - 2};
      svg.rect(box, "idle");
      const double part = static_cast<double>(pairs) / static_cast<double>(busiest);
      svg.rect({box.x, box.y, box.width * part, box.height}, "hop", hop_style(hop, hops),
               fmt::format("rank {}, hop {}: {} pairs", rank, hop, pairs));
    }
  }
  return svg.finish();
}

}  // namespace ringlab::report
