// .npy files as bytes.
#pragma once

#include <string>

#include "reference/io/tensor_file.h"

namespace ringlab::io {

/// The contents of a .npy file of version 1.0. bf16 and fp8, which NumPy lacks, are stored as f32
/// (exact); bytes as |u1.
std::string npy_contents(const FileTensor& tensor, const std::string& name);

}  // namespace ringlab::io
