#include "tests/emulator/machine/matrix_read.h"

#include <cstring>

#include "tests/emulator/machine/fault.h"
#include "tests/emulator/machine/numbers.h"

namespace ringlab::cuda::emulator {
namespace {

constexpr std::uint32_t kMatrixUnitBytes = 16;
constexpr std::uint32_t kUnitElements = 8;

/// A matrix in shared memory as its descriptor says, strides in bytes.
struct Matrix {
  std::uint32_t start;
  std::uint32_t leading;
  std::uint32_t stride;
};

Matrix decode(std::uint64_t descriptor) {
  // Fields of 14 bits, in units of 16 bytes (PTX ISA, "Matrix Descriptor Format").
  const auto field = [descriptor](int bit) {
    return static_cast<std::uint32_t>(descriptor >> bit & 0x3fffu) << 4;
  };
  // Layout type 1 in bits 62 and 63.
  if (descriptor >> 62 != 1) fault("matrix descriptor: not swizzled by 128 bytes");
  if ((descriptor >> 49 & 7u) != 0) fault("matrix descriptor: a base offset that is not 0");
  const Matrix matrix{field(0), field(16), field(32)};
  // A period of the swizzle, 8 rows of 128 bytes, begins where bits 7 … 9 of an address are 0.
  if ((matrix.start >> 7 & 7u) != 0) {
    fault("matrix descriptor: shared offset {} is inside a period of 8 rows",
          std::int64_t{matrix.start} - kFirstAddress);
  }
  return matrix;
}

/// Eight elements whose unswizzled address is given: bits 4 … 6 are exclusive-ored with bits 7 … 9.
void read_unit(SharedWindow& shared, DType type, std::uint32_t address, float* values) {
  // Address bits: unit of 16 bytes in the row of 128, exclusive-or row of the period.
  const std::uint32_t place = address ^ (address >> 3 & 0x70u);
  const std::byte* unit = shared.at(place, kMatrixUnitBytes, "matrix product");
  // Checked here and not at the issue, because the product reads now.
  shared.check_fenced(place, kMatrixUnitBytes, "matrix product");
  for (std::uint32_t i = 0; i < kUnitElements; ++i) {
    std::uint16_t bits;
    std::memcpy(&bits, unit + 2 * i, sizeof(bits));
    values[i] = widen(type, bits);
  }
}

}  // namespace

void read_rows(SharedWindow& shared, DType type, std::uint64_t descriptor, int rows,
               float* values) {
  const Matrix matrix = decode(descriptor);
  for (std::uint32_t r = 0; r < static_cast<std::uint32_t>(rows); ++r) {
    // Eight rows of 128 bytes are a period; `stride` goes from one to the next.
    const std::uint32_t row = matrix.start + r / 8 * matrix.stride + r % 8 * 128;
    read_unit(shared, type, row, values + std::size_t{16} * r);
    read_unit(shared, type, row + kMatrixUnitBytes, values + std::size_t{16} * r + kUnitElements);
  }
}

void read_columns(SharedWindow& shared, DType type, std::uint64_t descriptor, int columns,
                  float* values) {
  const Matrix matrix = decode(descriptor);
  for (std::uint32_t k = 0; k < 16; ++k) {
    const std::uint32_t row = matrix.start + k / 8 * matrix.stride + k % 8 * 128;
    for (std::uint32_t unit = 0; unit < static_cast<std::uint32_t>(columns) / 8; ++unit) {
      // Units of eight columns: eight of them fill a row of 128 bytes, then `leading` goes on.
      const std::uint32_t address = row + unit / 8 * matrix.leading + unit % 8 * kMatrixUnitBytes;
      read_unit(shared, type, address,
                values + std::size_t{k} * static_cast<std::size_t>(columns) + unit * kUnitElements);
    }
  }
}

}  // namespace ringlab::cuda::emulator
