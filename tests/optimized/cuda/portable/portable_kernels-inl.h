// Included inside the namespace of the kernels, or of kernels with a mistake.

template <class Element, int kChannels>
void emulate_forward(const ForwardCall<Element>& call, std::uint64_t seed) {
  const int tiles = (call.shape.queries + kForwardQueries - 1) / kForwardQueries;
  const int blocks = tiles * call.shape.batch * call.shape.q_heads;
  if (blocks == 0) return;
  emulator::emulate({.blocks = blocks,
                     .threads = kForwardThreads,
                     .shared_bytes = ForwardTiles<kChannels>::kSharedBytes,
                     .seed = seed},
                    [&] { forward_portable_block<Element, kChannels>(call); });
}

template <class Element, int kChannels, TileGradients kWhere>
void emulate_keys(const BackwardCall<Element>& call, std::uint64_t seed) {
  using Tiles = BackwardTiles<kChannels>;
  const int tiles = (call.shape.keys + Tiles::kKeys - 1) / Tiles::kKeys;
  const int blocks = tiles * call.shape.batch * call.shape.kv_heads;
  if (blocks == 0) return;
  emulator::emulate({.blocks = blocks,
                     .threads = kBackwardThreads,
                     .shared_bytes = KeyBlockMemory<kChannels>::kSharedBytes,
                     .seed = seed,
                     .blocks_at_once = 3},
                    [&] { backward_portable_block<Element, kChannels, kWhere>(call); });
}

template <class Element, int kChannels>
void emulate_queries(const BackwardCall<Element>& call, std::uint64_t seed) {
  using Tiles = BackwardTiles<kChannels>;
  const int tiles = (call.shape.queries + Tiles::kQueries - 1) / Tiles::kQueries;
  const int blocks = tiles * call.shape.batch * call.shape.q_heads;
  if (blocks == 0) return;
  emulator::emulate({.blocks = blocks,
                     .threads = kBackwardThreads,
                     .shared_bytes = QueryBlockMemory<kChannels>::kSharedBytes,
                     .seed = seed,
                     .blocks_at_once = 3},
                    [&] { backward_queries_block<Element, kChannels>(call); });
}

template <class Element, int kChannels>
void emulate_backward(const BackwardCall<Element>& call, std::uint64_t seed) {
  if (!call.deterministic) {
    return emulate_keys<Element, kChannels, TileGradients::here>(call, seed);
  }
  emulate_keys<Element, kChannels, TileGradients::elsewhere>(call, seed);
  emulate_queries<Element, kChannels>(call, seed + 1);
}

template <class Element>
void emulated_forward(const ForwardCall<Element>& call, std::uint64_t seed) {
  const int channels = padded_channels(call.shape.head_dim, call.shape.v_dim);
  if (channels == 64) return emulate_forward<Element, 64>(call, seed);
  if (channels == 128) return emulate_forward<Element, 128>(call, seed);
  emulate_forward<Element, 256>(call, seed);
}

template <class Element>
void emulated_backward(const BackwardCall<Element>& call, std::uint64_t seed) {
  const int channels = padded_channels(call.shape.head_dim, call.shape.v_dim);
  if (channels == 64) return emulate_backward<Element, 64>(call, seed);
  if (channels == 128) return emulate_backward<Element, 128>(call, seed);
  emulate_backward<Element, 256>(call, seed);
}
