#include "reference/io/tensor_file.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "reference/core/error.h"
#include "reference/io/atomic_file.h"
#include "reference/io/elements.h"
#include "reference/io/input_file.h"
#include "reference/io/npy.h"
#include "reference/io/npz.h"
#include "reference/io/safetensors.h"

namespace ringlab::io {
namespace {

namespace fs = std::filesystem;

NamedTensors read_folder(const fs::path& folder, const std::set<std::string>& wanted,
                         const ReadLimits& limits) {
  NamedTensors tensors;
  for (const std::string& name : wanted) {
    const fs::path file = folder / (name + ".npy");
    std::error_code ignored;
    // The name itself, not what it points to: a dangling link is there,
    // and reading it says why not.
    if (fs::exists(fs::symlink_status(file, ignored))) tensors[name] = read_npy(file, limits);
  }
  return tensors;
}

NamedTensors read_archive(const fs::path& path, const std::set<std::string>& wanted,
                          const ReadLimits& limits) {
  NamedTensors tensors;
  for (const auto& [name, bytes] : read_npz(path, wanted, limits.max_bytes)) {
    tensors[name] = parse_npy(bytes, printable(path.string()) + ", " + name + ".npy");
  }
  return tensors;
}

NamedTensors read_wanted(const fs::path& path, const std::set<std::string>& wanted,
                         const ReadLimits& limits) {
  if (container_of(path) == Container::safetensors) {
    const auto bytes = read_file(path, limits.max_bytes);
    return parse_safetensors_subset(bytes, printable(path.string()), wanted);
  }
  if (container_of(path) == Container::npz) return read_archive(path, wanted, limits);
  check_folder(path);
  return read_folder(path, wanted, limits);
}

/// A tensor's name becomes a file name: no hidden file, no way out of the folder, no early end.
void check_file_name(const std::string& name) {
  const bool plain = !name.empty() && !name.starts_with('.') &&
                     name.find_first_of(std::string("/\0", 2)) == std::string::npos;
  if (plain) return;
  throw_usage_error({.where = "tensor name",
                     .expected = "a plain file name",
                     .actual = "\"" + printable(name) + "\""});
}

}  // namespace

Container container_of(const fs::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (ending == ".safetensors") return Container::safetensors;
  return ending == ".npz" ? Container::npz : Container::folder;
}

void check_folder(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return;
  throw_input_error({.where = printable(path.string()),
                     .expected = "a .safetensors or .npz file, or a directory of .npy files",
                     .actual = fs::exists(path, ignored) ? "another kind of file" : "nothing",
                     .hint = path.extension() == ".npy" ? "Give the folder that it lies in" : ""});
}

NamedTensors read_tensors(const fs::path& path, const std::vector<std::string>& required,
                          const std::vector<std::string>& optional, const ReadLimits& limits) {
  std::set<std::string> wanted(required.begin(), required.end());
  wanted.insert(optional.begin(), optional.end());
  // Names that nobody asked for are not read, whatever they are.
  NamedTensors tensors = read_wanted(path, wanted, limits);
  for (const std::string& name : required) {
    if (tensors.contains(name)) continue;
    throw_input_error({.where = printable(path.string()),
                       .expected = container_of(path) == Container::safetensors
                                       ? "a tensor \"" + name + "\""
                                       : "a file " + name + ".npy",
                       .actual = "none"});
  }
  return tensors;
}

void write_tensors(const fs::path& path, const NamedTensors& tensors, AtomicFiles& files) {
  switch (container_of(path)) {
    case Container::folder:
      for (const auto& [name, tensor] : tensors) check_file_name(name);
      files.make_folder(path);
      for (const auto& [name, tensor] : tensors) {
        files.write(path / (name + ".npy"), npy_contents(tensor, name));
      }
      return;
    case Container::safetensors:
      return files.write(path, safetensors_contents(tensors));
    case Container::npz:
      throw_usage_error({.where = printable(path.string()),
                         .expected = "a .safetensors file or a directory to write to",
                         .actual = "a .npz file",
                         .hint = "These are only read."});
  }
}

void write_tensors(const fs::path& path, const NamedTensors& tensors) {
  AtomicFiles files;
  write_tensors(path, tensors, files);
  // Complete before the first name appears: all files or none.
  files.commit();
}

Tensor<double> to_tensor(const FileTensor& tensor, const std::string& name) {
  const std::vector<std::int64_t>& s = tensor.shape;
  if (s.size() < 2 || s.size() > 4) {
    throw_input_error({.where = "tensor \"" + printable(name) + "\"",
                       .expected = "2, 3 or 4 dimensions: (batch, heads, tokens, channels), "
                                   "(heads, tokens, channels) or (tokens, channels)",
                       .actual = "shape " + shape_text(s)});
  }
  const std::size_t n = s.size();
  // Missing dimensions are the outer ones: one batch, one head.
  Tensor<double> result(Extents{n == 4 ? s[0] : 1, n >= 3 ? s[n - 3] : 1, s[n - 2], s[n - 1]});
  if (result.size() != std::ssize(tensor.values)) {
    throw_input_error({.where = "tensor \"" + printable(name) + "\"",
                       .expected = std::to_string(result.size()) + " values",
                       .actual = std::to_string(tensor.values.size())});
  }
  result.values() = tensor.values;
  return result;
}

FileTensor from_tensor(const Tensor<double>& tensor, DType dtype) {
  const Extents& e = tensor.extents();
  return {.dtype = dtype,
          .is_byte = false,
          .shape = {e.batch, e.heads, e.tokens, e.channels},
          .values = tensor.values()};
}

}  // namespace ringlab::io
