#pragma once
// Turns of channel pairs by position.
#include <cstdint>
#include <vector>

namespace ringlab::io {

/// A turn in the plane, as a complex number of length one.
struct Rotation {
  double cosine = 1;
  double sine = 0;
  Rotation operator*(const Rotation& other) const {
    return {cosine * other.cosine - sine * other.sine, sine * other.cosine + cosine * other.sine};
  }
};

/// Rotary position embedding (Su et al. 2021, eq. 34): channels 2i and 2i+1 turn by
/// position · 10000^(-2i/channels). A last odd channel stays. The same bits on every machine: angles
/// are computed in 192 bits.
class Rotary {
 public:
  Rotary(std::int64_t channels, std::int64_t tokens);

  /// The turn of every channel pair at this position: the product over the bits of the position.
  std::vector<Rotation> at(std::int64_t position) const;

 private:
  int bits_;
  std::vector<Rotation> powers_;  // (pairs, bits): the turn by 2^bit positions
};

}  // namespace ringlab::io
