#include "reference/io/tensor_rows.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "reference/core/error.h"
#include "reference/core/shards.h"
#include "reference/io/input_file.h"
#include "reference/io/npy.h"
#include "reference/io/npz.h"

namespace ringlab::io {
namespace {

namespace fs = std::filesystem;

/// The extents of a tensor of which only the shape is known, as to_tensor() has them.
Extents extents_of(const std::vector<std::int64_t>& shape, const std::string& name) {
  const std::size_t n = shape.size();
  if (n < 2 || n > 4) {
    throw_input_error({.where = "tensor \"" + printable(name) + "\"",
                       .expected = "2, 3 or 4 dimensions: (batch, heads, tokens, channels), "
                                   "(heads, tokens, channels) or (tokens, channels)",
                       .actual = "shape " + shape_text(shape)});
  }
  return {n == 4 ? shape[0] : 1, n >= 3 ? shape[n - 3] : 1, shape[n - 2], shape[n - 1]};
}

RowSource source_of(const fs::path& file, StoredTensor stored, const std::string& name,
                    const std::string& archived = {}) {
  const Extents extents = extents_of(stored.shape, name);
  if (stored.type.kind != ElementKind::number) {
    throw_input_error({.where = "tensor " + printable(name),
                       .expected = "floating-point numbers",
                       .actual = "bytes or booleans"});
  }
  return {file, std::move(stored), extents, archived};
}

/// Calls visit(first row in the tensor, first row in the shard, count) for pieces that are
/// neighbours in both, for every batch and head.
template <class Visit>
void for_each_piece(const Extents& whole, const Positions& positions, Visit&& visit) {
  for (std::int64_t head = 0; head < whole.batch * whole.heads; ++head) {
    std::int64_t local = head * positions.size();
    for (const PositionRun& run : positions.runs()) {
      const std::int64_t together = run.stride == 1 ? run.count : 1;
      for (std::int64_t i = 0; i < run.count; i += together, local += together) {
        visit(head * whole.tokens + run.first + i * run.stride, local, together);
      }
    }
  }
}

/// A file descriptor, closed with its owner.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int value() const { return value_; }

 private:
  int value_;
};

[[noreturn]] void throw_write_error(const fs::path& path) {
  throw_environment_error({.where = printable(path.string()),
                           .expected = "to write the file",
                           .actual = std::system_category().message(errno)});
}

/// Writes all bytes at an offset; several processes write the same file, so there is no shared
/// position.
void write_at(const Descriptor& file, const std::string& bytes, std::int64_t offset,
              const fs::path& path) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t wrote = ::pwrite(file.value(), bytes.data() + done, bytes.size() - done,
                                   offset + static_cast<off_t>(done));
    if (wrote >= 0) {
      done += static_cast<std::size_t>(wrote);
    } else if (errno != EINTR) {
      throw_write_error(path);
    }
  }
}

std::int64_t end_of(const PlannedTensor& tensor) {
  return tensor.begin + checked_bytes(tensor.shape, dtype_info(tensor.dtype).bytes, "output");
}

/// Reads a whole tensor, where single rows cannot be read.
Tensor<double> whole_tensor(const RowSource& source) {
  if (source.name.empty()) return to_tensor(read_npy(source.file), source.file.stem().string());
  return to_tensor(read_tensors(source.file, {source.name}, {}).at(source.name), source.name);
}

}  // namespace

std::map<std::string, RowSource> open_rows(const fs::path& path,
                                           const std::set<std::string>& wanted) {
  std::map<std::string, RowSource> sources;
  if (container_of(path) == Container::npz) {
    const std::string name = printable(path.string());
    for (const auto& [tensor, bytes] : read_npz(path, wanted, ReadLimits().max_bytes)) {
      sources[tensor] = source_of(path, locate_npy(bytes, std::ssize(bytes), name), tensor, tensor);
    }
    return sources;
  }
  if (container_of(path) == Container::safetensors) {
    const InputFile file(path);
    const std::string name = printable(path.string());
    const std::int64_t size = file.size();
    const std::int64_t bytes =
        safetensors_preamble_bytes(file.read(std::min<std::int64_t>(size, 8)), size, name);
    for (auto& [tensor, stored] : locate_safetensors(file.read(bytes), size, name, wanted)) {
      sources[tensor] = source_of(path, std::move(stored), tensor);
    }
    return sources;
  }
  check_folder(path);
  for (const std::string& tensor : wanted) {
    const fs::path part = path / (tensor + ".npy");
    std::error_code ignored;
    if (!fs::exists(fs::symlink_status(part, ignored))) continue;
    const InputFile file(part);
    const auto start = file.read(std::min(file.size(), kLongestNpyStart));
    sources[tensor] =
        source_of(part, locate_npy(start, file.size(), printable(part.string())), tensor);
  }
  return sources;
}

// A run of tokens is one read for each batch and head; scattered tokens are a read each.
Tensor<double> read_rows(const RowSource& source, const Positions& positions) {
  Extents extents = source.extents;
  extents.tokens = positions.size();
  if (source.stored.is_column_major || !source.name.empty()) {
    return shard_of<double>(whole_tensor(source).view(), positions);
  }
  Tensor<double> rows(extents);
  const InputFile file(source.file);
  const std::string name = printable(source.file.string());
  const std::int64_t row_bytes = extents.channels * element_bytes(source.stored.type);
  for_each_piece(source.extents, positions, [&](auto row, auto local, auto count) {
    const auto bytes = file.read_at(source.stored.begin + row * row_bytes, count * row_bytes);
    const FileTensor piece =
        decode_elements(bytes, source.stored.type, {count, extents.channels}, name);
    std::ranges::copy(piece.values, rows.values().begin() + local * extents.channels);
  });
  return rows;
}

// All processes plan alike from the same arguments, so that none has to tell another where its rows
// belong, and whichever comes first makes the files.
SharedOutput::SharedOutput(const fs::path& path, std::map<std::string, PlannedTensor> tensors,
                           const std::string& mark, AtomicFiles& files)
    : mark_(mark), tensors_(std::move(tensors)) {
  if (container_of(path) == Container::safetensors) {
    add_file("", path, plan_safetensors(tensors_), files);
    return;
  }
  files.make_folder(path);
  for (auto& [name, tensor] : tensors_) {
    tensor.dtype = npy_dtype(tensor.dtype);
    std::string preamble = npy_preamble(tensor.dtype, tensor.shape);
    tensor.begin = std::ssize(preamble);
    add_file(name, path / (name + ".npy"), std::move(preamble), files);
  }
}

void SharedOutput::add_file(const std::string& tensor, const fs::path& path, std::string preamble,
                            AtomicFiles& files) {
  std::int64_t bytes = std::ssize(preamble);
  for (const auto& [name, planned] : tensors_) {
    if (tensor.empty() || name == tensor) bytes = std::max(bytes, end_of(planned));
  }
  targets_[tensor] = {path, files.share(path, mark_, bytes), std::move(preamble)};
}

void SharedOutput::write_preambles() {
  for (const auto& [name, target] : targets_) {
    const Descriptor file(::open(target.temporary.c_str(), O_WRONLY | O_CLOEXEC));
    if (file.value() < 0) throw_write_error(target.path);
    write_at(file, target.preamble, 0, target.path);
  }
}

// Synced by every process: commit() may rename only what has reached the disk.
void SharedOutput::write_rows(const std::string& name, const Tensor<double>& rows,
                              const Positions& positions) {
  const PlannedTensor& tensor = tensors_.at(name);
  const ResultFile& target = targets_.contains("") ? targets_.at("") : targets_.at(name);
  const Descriptor file(::open(target.temporary.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.value() < 0) throw_write_error(target.path);
  // (batch, heads, tokens, channels) of the whole, whatever dimensions its file drops.
  Extents whole = rows.extents();
  std::int64_t elements = 1;
  for (const std::int64_t extent : tensor.shape) elements *= extent;
  const std::int64_t of_one_token = whole.batch * whole.heads * whole.channels;
  whole.tokens = of_one_token == 0 ? 0 : elements / of_one_token;
  const std::int64_t row_bytes = whole.channels * dtype_info(tensor.dtype).bytes;
  for_each_piece(whole, positions, [&](auto row, auto local, auto count) {
    FileTensor piece{
        .dtype = tensor.dtype, .is_byte = false, .shape = {count, whole.channels}, .values = {}};
    const auto begin = rows.values().begin() + local * whole.channels;
    piece.values.assign(begin, begin + count * whole.channels);
    std::string bytes;
    append_elements(bytes, piece, tensor.dtype, name);
    write_at(file, bytes, tensor.begin + row * row_bytes, target.path);
  });
  if (::fsync(file.value()) != 0) throw_write_error(target.path);
}

}  // namespace ringlab::io
