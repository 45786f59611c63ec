// Some rows of tensors in files: what a rank reads of the input and writes of the output.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "reference/core/positions.h"
#include "reference/core/tensor.h"
#include "reference/io/atomic_file.h"
#include "reference/io/safetensors.h"

namespace ringlab::io {

/// A tensor whose rows are read on demand.
struct RowSource {
  std::filesystem::path file;
  StoredTensor stored;
  Extents extents;        ///< of its 2, 3 or 4 dimensions, as to_tensor() has them
  std::string name = {};  ///< in an archive, of which no part can be read alone; else empty
};

/// The tensors of `wanted` that a .safetensors or .npz file, or a directory of NAME.npy, holds. Only
/// headers are read (archives are unpacked), and all that read_tensors() checks about them is
/// checked.
std::map<std::string, RowSource> open_rows(const std::filesystem::path& path,
                                           const std::set<std::string>& wanted);

/// The tokens at `positions` of every batch and head, widened exactly. Reads no other bytes, unless
/// the tensor is in an archive or column-major.
Tensor<double> read_rows(const RowSource& source, const Positions& positions);

/// A result that several processes write: files under temporary names, each complete when all have
/// written their rows. One of the processes commits them.
class SharedOutput {
 public:
  /// Equal on every process that has the same arguments; `mark`, which nobody outside can guess,
  /// tells runs apart. The files, of full size, become some of `files`, which must outlive this.
  /// Environment error when that is impossible.
  SharedOutput(const std::filesystem::path& path, std::map<std::string, PlannedTensor> tensors,
               const std::string& mark, AtomicFiles& files);

  /// Writes everything but the rows: for one of the processes.
  void write_preambles();
  /// Writes a shard (batch, heads, positions.size(), channels), rounded to the planned dtype, and
  /// syncs it.
  void write_rows(const std::string& name, const Tensor<double>& rows, const Positions& positions);

 private:
  struct ResultFile {
    std::filesystem::path path, temporary;
    std::string preamble;
  };
  void add_file(const std::string& tensor, const std::filesystem::path& path, std::string preamble,
                AtomicFiles& files);

  const std::string mark_;
  std::map<std::string, PlannedTensor> tensors_;
  std::map<std::string, ResultFile> targets_;  ///< by tensor; one entry "" for .safetensors
};

}  // namespace ringlab::io
