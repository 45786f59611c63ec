// Included inside the namespace of the kernel, or of a kernel with a mistake.

template <class Tile, HopperQueryGradients kWhere>
void emulate_backward_hopper(const BackwardCall<typename Tile::Element>& call, std::uint64_t seed) {
  const bool by_heads = kWhere == HopperQueryGradients::here && seed % 3 > 0;
  BackwardOrder order =
      by_heads ? order_by_heads(call.shape, Tile::kKeys) : order_by_groups(call.shape, Tile::kKeys);
  if (seed % 2 == 1) order.section_heads = order.block_heads;
  const auto params = hopper_backward_params<Tile>(call, order, emulator::make_tensor_map);
  emulator::emulate({.blocks = static_cast<int>(hopper_backward_blocks(call.shape, order)),
                     .threads = Tile::kThreads,
                     .shared_bytes = HopperBackwardShared<Tile>::kBytes,
                     .seed = seed,
                     .blocks_at_once = 4},
                    [&] { backward_hopper_block<Tile, kWhere>(params); });
}

/// dQ in a fixed order by the portable kernel, as on a device.
template <class Element, int kChannels>
void emulate_dq_in_order(const BackwardCall<Element>& call, std::uint64_t seed) {
  constexpr int kQueries = BackwardTiles<kChannels>::kQueries;
  const int tiles = (call.shape.queries + kQueries - 1) / kQueries;
  emulator::emulate({.blocks = tiles * call.shape.batch * call.shape.q_heads,
                     .threads = kBackwardThreads,
                     .shared_bytes = QueryBlockMemory<kChannels>::kSharedBytes,
                     .seed = seed,
                     .blocks_at_once = 4},
                    [&] { backward_queries_block<Element, kChannels>(call); });
}

template <class Element>
void emulated_backward_hopper(const BackwardCall<Element>& call, std::uint64_t seed) {
  if (call.shape.queries == 0 || call.shape.keys == 0) return;
  with_hopper_backward_tile(call, [&](auto tile) {
    using Tile = decltype(tile);
    if (!call.deterministic) {
      return emulate_backward_hopper<Tile, HopperQueryGradients::here>(call, seed);
    }
    emulate_backward_hopper<Tile, HopperQueryGradients::elsewhere>(call, seed);
    emulate_dq_in_order<Element, Tile::kChannels>(call, seed + 1);
  });
}
