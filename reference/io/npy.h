// .npy files as bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reference/io/elements.h"
#include "reference/io/tensor_file.h"

namespace ringlab::io {

/// The contents of a .npy file of version 1.0. bf16 and fp8, which NumPy lacks, are stored as f32
/// (exact); bytes as |u1.
std::string npy_contents(const FileTensor& tensor, const std::string& name);

/// The contents of that file before the elements.
std::string npy_preamble(DType stored, const std::vector<std::int64_t>& shape);
/// The dtype that .npy stores numbers of this one as.
DType npy_dtype(DType dtype);

/// The longest start of a file that locate_npy() looks at.
inline constexpr std::int64_t kLongestNpyStart = 12 + 65536;
/// The place of the tensor, from the start of a file of `file_bytes`; checks all that parse_npy
/// does.
StoredTensor locate_npy(std::span<const std::byte> start, std::int64_t file_bytes,
                        const std::string& name);

}  // namespace ringlab::io
