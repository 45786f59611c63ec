// Matrices of small integers, whose products are exact in every format and order.
#pragma once

#include <cstdint>
#include <vector>

#include "optimized/cuda/hopper/descriptor.h"

namespace ringlab::cuda::emulator {

/// (rows, columns) of integers from -4 to 4, aligned to 16 bytes by the allocator.
template <class Element>
struct Matrix {
  int rows;
  int columns;
  std::vector<Element> values;

  double at(int row, int column) const {
    return static_cast<double>(values[static_cast<std::size_t>(row * columns + column)]);
  }
};

template <class Element>
Matrix<Element> integers(int rows, int columns, std::uint32_t seed) {
  Matrix<Element> matrix{rows, columns, {}};
  std::uint32_t state = seed * 2654435761u + 12345;
  for (int i = 0; i < rows * columns; ++i) {
    state = state * 1664525u + 1013904223u;
    matrix.values.push_back(Element(static_cast<double>(static_cast<int>(state >> 20) % 9 - 4)));
  }
  return matrix;
}

/// Writes a matrix to shared memory as boxes of 64 channels and `box_rows` rows, as load_box would.
template <class Element>
void store_boxes(std::byte* shared, const Matrix<Element>& matrix, int box_rows) {
  for (int row = 0; row < matrix.rows; ++row) {
    for (int column = 0; column < matrix.columns; ++column) {
      const auto box = static_cast<std::uint32_t>(column / 64 * box_rows) * 128;
      // shared is aligned to 1024 bytes, so that offsets swizzle as addresses do.
      const std::uint32_t place =
          swizzle_128(box + static_cast<std::uint32_t>(row * 128 + column % 64 * 2));
      *reinterpret_cast<Element*>(shared + place) =
          matrix.values[static_cast<std::size_t>(row * matrix.columns + column)];
    }
  }
}

}  // namespace ringlab::cuda::emulator
