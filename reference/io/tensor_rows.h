// Some rows of tensors in files: what a rank reads of the input and writes of the output.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "reference/core/positions.h"
#include "reference/core/tensor.h"
#include "reference/io/safetensors.h"

namespace ringlab::io {

/// A tensor whose rows are read on demand.
struct RowSource {
  std::filesystem::path file;
  StoredTensor stored;
  Extents extents;  ///< of its 2, 3 or 4 dimensions, as to_tensor() has them
};

/// The tensors of `wanted` that a .safetensors file, or a directory of NAME.npy, holds. Only
/// headers are read, and all that read_tensors() checks about them is checked.
std::map<std::string, RowSource> open_rows(const std::filesystem::path& path,
                                           const std::set<std::string>& wanted);

/// The tokens at `positions` of every batch and head, widened exactly. Reads no other bytes.
Tensor<double> read_rows(const RowSource& source, const Positions& positions);

/// A result that several processes write: files under temporary names, complete when renamed.
/// One process makes it, with everything but the rows; all write their rows; it commits.
class SharedOutput {
 public:
  /// Equal on every process that has the same arguments; `mark` tells runs apart.
  SharedOutput(const std::filesystem::path& path, std::map<std::string, PlannedTensor> tensors,
               std::int64_t mark);
  ~SharedOutput();  ///< removes what create() made unless it was committed
  SharedOutput(const SharedOutput&) = delete;
  SharedOutput& operator=(const SharedOutput&) = delete;

  /// Makes the files, full size. Environment error when that is impossible.
  void create();
  /// Writes a shard (batch, heads, positions.size(), channels), rounded to the planned dtype, and
  /// syncs it.
  void write_rows(const std::string& name, const Tensor<double>& rows, const Positions& positions);
  /// Gives the files their names; only for the process that made them, when all have written.
  void commit();

 private:
  struct ResultFile {
    std::filesystem::path path, temporary;
    std::string preamble;
    std::int64_t bytes = 0;
  };
  std::filesystem::path folder_;  ///< of .npy files; empty for one .safetensors file
  std::map<std::string, PlannedTensor> tensors_;
  std::map<std::string, ResultFile> targets_;  ///< by tensor; one entry "" for .safetensors
  bool created_ = false;
};

}  // namespace ringlab::io
