// Tensors in files: .npy directories, .npz and .safetensors, read with suspicion, written whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "reference/core/dtype.h"
#include "reference/core/tensor.h"

namespace ringlab::io {

class AtomicFiles;

/// A tensor as it lies in a file: any number of dimensions up to 8, row-major. Booleans and bytes
/// are `is_byte` with dtype ignored.
struct FileTensor {
  DType dtype = DType::f32;
  bool is_byte = false;
  std::vector<std::int64_t> shape;
  std::vector<double> values;  ///< widened exactly
};
using NamedTensors = std::map<std::string, FileTensor>;

struct ReadLimits {
  std::int64_t max_bytes = std::int64_t{16} << 30;  ///< of the file, checked before it is read
};

/// Input errors say which file, what was expected and what was found. Nothing is allocated from a
/// header before it was compared with the size of the file. docs/formats.md has the rules.
FileTensor read_npy(const std::filesystem::path& path, const ReadLimits& limits = {});
NamedTensors read_safetensors(const std::filesystem::path& path, const ReadLimits& limits = {});

/// The parsers themselves, on bytes in memory (what the fuzzers feed); `name` is for messages.
FileTensor parse_npy(const std::vector<std::byte>& bytes, const std::string& name);
NamedTensors parse_safetensors(const std::vector<std::byte>& bytes, const std::string& name);

/// The container that a path names, by its ending in letters of either case.
enum class Container { folder, safetensors, npz };
Container container_of(const std::filesystem::path& path);
/// Input error where a path that names a folder is none.
void check_folder(const std::filesystem::path& path);

/// A `.safetensors` or `.npz` file, or a directory of NAME.npy for each of `wanted` (missing optional
/// names are skipped; missing required ones are input errors).
NamedTensors read_tensors(const std::filesystem::path& path,
                          const std::vector<std::string>& required,
                          const std::vector<std::string>& optional, const ReadLimits& limits = {});

/// Writes under a temporary name in the same folder, syncs, renames: complete or absent.
/// Environment errors for unwritable places and full disks, with nothing left behind.
/// A path that ends in .safetensors makes that file; any other makes a directory of NAME.npy, but
/// for .npz, a usage error.
/// bf16 has no NumPy dtype: .npy holds it as f32 values (documented), safetensors as BF16.
void write_tensors(const std::filesystem::path& path, const NamedTensors& tensors);
/// The same, together with other files: they are there when `files` is committed.
void write_tensors(const std::filesystem::path& path, const NamedTensors& tensors,
                   AtomicFiles& files);
/// Writes a text or binary file with the same promise. "-" writes to standard output.
void write_file(const std::filesystem::path& path, const std::string& contents);

/// (batch, heads, tokens, channels) from 4 dimensions; 3 dimensions are (heads, tokens, channels),
/// 2 are (tokens, channels). Anything else is an input error that names the tensor.
Tensor<double> to_tensor(const FileTensor& tensor, const std::string& name);
FileTensor from_tensor(const Tensor<double>& tensor, DType dtype);

}  // namespace ringlab::io
