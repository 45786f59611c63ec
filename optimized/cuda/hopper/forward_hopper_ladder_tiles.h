// The versions of forward_hopper_ladder.h and the tiles that they are compiled with.
#pragma once

#include <vector>

#include "optimized/cuda/hopper/forward_hopper.cuh"
#include "optimized/cuda/hopper/forward_hopper_ladder.h"

namespace ringlab::cuda {

namespace ladder {

// Tactics, each with one idea more than the one before.
inline constexpr HopperTactics kInOrder{
    .scores_ahead = false, .takes_turns = false, .knows_full_blocks = false, .slack = 0};
inline constexpr HopperTactics kAhead{.takes_turns = false, .knows_full_blocks = false, .slack = 0};
inline constexpr HopperTactics kTurns{.knows_full_blocks = false, .slack = 0};
inline constexpr HopperTactics kTwoLoops{.slack = 0};
// The usual tactics with one thing changed.
inline constexpr HopperTactics kEarlyWait{.waits_late = false};
inline constexpr HopperTactics kOneInEight{.polynomials = 1};
inline constexpr HopperTactics kTwoInEight{.polynomials = 2};
inline constexpr HopperTactics kKeptQueries{.keeps_queries = true};
inline constexpr HopperTactics kBoxes{.stores_boxes = true};
inline constexpr HopperTactics kTold{.tells_tiles = true};
inline constexpr HopperTactics kPairs{.cluster = 2};
inline constexpr HopperTactics kTogetherInPairs{
    .keeps_queries = true, .stores_boxes = true, .cluster = 2, .tells_tiles = true};

/// A tile with as many consumers, and keys in a block, as the kernel has.
template <int kChannels, HopperTactics kTactics = HopperTactics{}>
using Tile = HopperTile<BFloat16, kChannels, kChannels == 64 ? 3 : 2, 128, 2, kTactics>;

template <class Tile, class Visitor>
constexpr void visit_version(Visitor& visit, HopperVersion version) {
  version.channels = Tile::kChannels;
  version.tile_queries = Tile::kQueries;
  version.heads_together = Tile::kCluster;
  visit(version, Tile{});
}

template <int kChannels, class Visitor>
constexpr void for_each_step(Visitor& visit) {
  const auto on_the_way = [&]<class Version>(Version, std::string_view name,
                                             std::string_view what) {
    visit_version<Version>(visit,
                           {.name = name, .what = what, .persistent = false, .sections = false});
  };
  on_the_way(Tile<kChannels, kInOrder>{}, "in order",
             "a producer copies; S, softmax and P V one after the other");
  on_the_way(Tile<kChannels, kAhead>{}, "scores ahead",
             "S of the next block on the tensor cores under the softmax of this one");
  on_the_way(Tile<kChannels, kTurns>{}, "turns",
             "one consumer's products under the softmax of the others");
  on_the_way(Tile<kChannels, kTwoLoops>{}, "full blocks", "no comparisons where all is seen");
  on_the_way(Tile<kChannels>{}, "lazy rescaling", "only for scores that exceed the reference by 8");
  visit_version<Tile<kChannels>>(
      visit,
      {.name = "persistent", .what = "a thread block per multiprocessor", .sections = false});
  visit_version<Tile<kChannels>>(
      visit, {.name = "sections", .what = "heads whose K and V fit into the L2 cache together"});
}

template <int kChannels, class Visitor>
constexpr void for_each_aside(Visitor& visit) {
  constexpr auto kAside = HopperVersionKind::aside;
  visit_version<Tile<kChannels, kEarlyWait>>(
      visit,
      {.name = "early wait", .what = "ptxas may wait for P V before the softmax", .kind = kAside});
  visit_version<Tile<kChannels, kOneInEight>>(visit, {.name = "1/8 polynomials",
                                                      .what = "weights by multiply-adds",
                                                      .kind = kAside,
                                                      .exp_error = kPolynomialError});
  visit_version<Tile<kChannels, kTwoInEight>>(visit, {.name = "2/8 polynomials",
                                                      .what = "weights by multiply-adds",
                                                      .kind = kAside,
                                                      .exp_error = kPolynomialError});
  if constexpr (kChannels == 128) {  // with 64, three consumers have no registers for it
    visit_version<Tile<kChannels, kKeptQueries>>(
        visit, {.name = "kept queries", .what = "Q in registers for a whole tile", .kind = kAside});
  }
  visit_version<Tile<kChannels, kBoxes>>(
      visit,
      {.name = "boxes out", .what = "results by way of shared memory, in boxes", .kind = kAside});
  visit_version<Tile<kChannels, kPairs>>(
      visit,
      {.name = "pairs of heads", .what = "two blocks share copies of K and V", .kind = kAside});
  visit_version<Tile<kChannels, kTold>>(
      visit, {.name = "told tiles", .what = "a warp finds out the next tile", .kind = kAside});
}

}  // namespace ladder

/// Calls visit(version, tile) for each of hopper_versions(), in their order.
template <class Visitor>
constexpr void for_each_hopper_version(Visitor&& visit) {
  constexpr auto kAside = HopperVersionKind::aside;
  ladder::for_each_step<64>(visit);
  ladder::for_each_aside<64>(visit);
  ladder::visit_version<HopperTile<BFloat16, 64, 2, 128, 2>>(
      visit,
      {.name = "two consumers", .what = "of 240 registers, not three of 160", .kind = kAside});
  ladder::for_each_step<128>(visit);
  ladder::visit_version<ladder::Tile<128, kTacticsAt128>>(
      visit, {.name = "together", .what = "kept queries, boxes out and told tiles"});
  ladder::for_each_aside<128>(visit);
  ladder::visit_version<HopperTile<BFloat16, 128, 2, 176, 2>>(
      visit, {.name = "wide blocks",
              .what = "176 keys, where all is seen",
              .kind = kAside,
              .needs_everything_seen = true});
  ladder::visit_version<ladder::Tile<128, ladder::kTogetherInPairs>>(
      visit, {.name = "together, in pairs", .what = "and pairs of heads", .kind = kAside});
  ladder::visit_version<HopperTile<BFloat16, 128, 2, 128, 3>>(
      visit, {.name = "three stages", .what = "K and V two blocks ahead", .kind = kAside});
}

/// Calls visit(tile) for the version of that name.
template <class Visitor>
void with_hopper_version(const HopperVersion& version, Visitor&& visit) {
  for_each_hopper_version([&](const HopperVersion& one, auto tile) {
    if (one.name == version.name && one.channels == version.channels) visit(tile);
  });
}

inline std::vector<HopperVersion> list_hopper_versions() {
  std::vector<HopperVersion> all;
  for_each_hopper_version([&](const HopperVersion& version, auto) { all.push_back(version); });
  return all;
}

}  // namespace ringlab::cuda
