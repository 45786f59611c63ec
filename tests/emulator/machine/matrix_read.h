// Reads a matrix from shared memory as the tensor cores do, given its descriptor.
#pragma once

#include <cstdint>

#include "reference/core/dtype.h"
#include "tests/emulator/machine/shared_memory.h"

namespace ringlab::cuda::emulator {

/// Reads (rows, 16) from a K-major matrix, row r at values + 16 r. Descriptors are read as the PTX
/// ISA says and not as descriptor.h makes them. Faults: fields that are not valid, unfenced writes,
/// addresses outside shared memory.
void read_rows(SharedWindow& shared, DType type, std::uint64_t descriptor, int rows, float* values);

/// Reads (16, columns) from an MN-major matrix, row k at values + columns k.
void read_columns(SharedWindow& shared, DType type, std::uint64_t descriptor, int columns,
                  float* values);

}  // namespace ringlab::cuda::emulator
