// Included inside the namespace of the kernel, or of a kernel with a mistake.

template <class Tile>
void emulate_hopper_tile(const ForwardCall<typename Tile::Element>& call,
                         const EmulatedGrid& grid) {
  if (call.shape.queries == 0) return;
  const auto params = hopper_params<Tile>(call, emulator::make_tensor_map);
  const int blocks = grid.blocks * Tile::kCluster;
  emulator::emulate({.blocks = blocks,
                     .threads = Tile::kThreads,
                     .shared_bytes = kHopperSharedBytes<Tile>,
                     .seed = grid.seed,
                     .blocks_at_once = blocks,
                     .cluster = Tile::kCluster},
                    [&] { forward_hopper_tiles<Tile>(params); });
}

/// The shape that most mistakes are tried in.
template <class Element>
using SmallHopperTile = HopperTile<Element, 64, 3, 128, 2>;

/// The same with the tactics that the kernel as it is does not have.
inline constexpr HopperTactics kAllTactics{
    .keeps_queries = true, .stores_boxes = true, .tells_tiles = true};
template <class Element>
using TacticalHopperTile = HopperTile<Element, 64, 3, 128, 2, kAllTactics>;
inline constexpr HopperTactics kPairsOfHeads{.cluster = 2};
template <class Element>
using PairedHopperTile = HopperTile<Element, 64, 3, 128, 2, kPairsOfHeads>;
