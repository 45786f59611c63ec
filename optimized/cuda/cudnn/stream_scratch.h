// Memory that calls of cuDNN need for a while: workspaces, and results before they are merged.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "optimized/cuda/device.h"

namespace ringlab::cudnn {

/// `bytes`, rounded up to a multiple of the alignment of cudaMalloc.
inline std::int64_t aligned_bytes(std::int64_t bytes) {
  constexpr std::int64_t kAlignment = 256;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// Memory of streams. Work of a stream is done in order, so a piece of it serves call after call.
class StreamScratch {
 public:
  /// Memory of at least so many bytes; its contents are lost when more bytes are wanted.
  std::byte* of(int device, cuda::Stream stream, std::int64_t bytes) {
    WorkspacePiece& piece = pieces_[{device, stream}];
    if (piece.bytes >= bytes) return piece.memory.get();
    const std::int64_t size = std::max(bytes, 2 * piece.bytes);
    cuda::OwnedMemory larger = cuda::allocate(device, size);
    // Keeps the old memory: work that was issued, or captured as a graph, still uses it.
    outgrown_.push_back(std::exchange(piece.memory, std::move(larger)));
    piece.bytes = size;
    return piece.memory.get();
  }

 private:
  struct WorkspacePiece {
    cuda::OwnedMemory memory;
    std::int64_t bytes = 0;
  };
  std::map<std::pair<int, cuda::Stream>, WorkspacePiece> pieces_;
  std::vector<cuda::OwnedMemory> outgrown_;  // together less than what is in use
};

}  // namespace ringlab::cudnn
