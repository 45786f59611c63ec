#include <sys/stat.h>

#include "tests/reference/io/io_testing.h"

namespace ringlab::io {
namespace {

namespace fs = std::filesystem;

FileTensor matrix(double first) {
  return {.dtype = DType::f32, .is_byte = false, .shape = {1, 2}, .values = {first, first + 1}};
}

TEST(TensorFile, a_folder_and_a_safetensors_file_hold_the_same) {
  const TemporaryFolder folder;
  const NamedTensors tensors = {{"q", matrix(1)}, {"k", matrix(3)}, {"do", matrix(5)}};
  for (const std::string name : {"folder", "file.safetensors"}) {
    write_tensors(folder / name, tensors);
    const NamedTensors read = read_tensors(folder / name, {"q", "k"}, {"do", "absent"});
    ASSERT_EQ(read.size(), 3u);
    for (const auto& [tensor, value] : tensors) EXPECT_EQ(read.at(tensor).values, value.values);
  }
  EXPECT_TRUE(fs::is_regular_file(folder / "folder" / "do.npy"));
  EXPECT_EQ(read_npy(folder / "folder" / "q.npy").values, matrix(1).values);
  EXPECT_EQ(read_safetensors(folder / "file.safetensors").size(), 3u);
}

TEST(TensorFile, a_missing_required_tensor_is_named) {
  const TemporaryFolder folder;
  for (const std::string name : {"folder", "file.safetensors"}) {
    write_tensors(folder / name, {{"q", matrix(1)}});
    expect_error(ErrorKind::input, {name, "k"}, [&] {
      read_tensors(folder / name, {"q", "k"}, {});
    });
  }
}

TEST(TensorFile, an_optional_tensor_that_is_broken_is_still_an_error) {
  const TemporaryFolder folder;
  write_tensors(folder / "in", {{"q", matrix(1)}});
  put(folder / "in" / "do.npy", "not a tensor");
  expect_error(ErrorKind::input, {"do.npy"}, [&] { read_tensors(folder / "in", {"q"}, {"do"}); });
  fs::remove(folder / "in" / "do.npy");
  fs::create_symlink("nowhere", folder / "in" / "do.npy");
  expect_error(ErrorKind::input, {"do.npy"}, [&] { read_tensors(folder / "in", {"q"}, {"do"}); });
}

TEST(TensorFile, places_that_hold_no_tensors_are_input_errors) {
  const TemporaryFolder folder;
  put(folder / "q.zip", "x");
  fs::create_directory(folder / "folder.safetensors");
  expect_error(ErrorKind::input, {"missing", "nothing"},
               [&] { read_tensors(folder / "missing", {"q"}, {}); });
  expect_error(ErrorKind::input, {"missing.safetensors"},
               [&] { read_tensors(folder / "missing.safetensors", {"q"}, {}); });
  expect_error(ErrorKind::input, {"q.zip", "directory of .npy files"},
               [&] { read_tensors(folder / "q.zip", {"q"}, {}); });
  expect_error(ErrorKind::input, {"a regular file", "a directory"},
               [&] { read_tensors(folder / "folder.safetensors", {"q"}, {}); });
}

TEST(TensorFile, a_pipe_is_rejected_and_not_waited_for) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "q.npy").c_str(), 0600), 0);
  expect_error(ErrorKind::input, {"a regular file"}, [&] { read_npy(folder / "q.npy"); });
  expect_error(ErrorKind::input, {"a regular file"}, [] { read_npy("/dev/zero"); });
}

TEST(TensorFile, a_link_to_a_regular_file_is_followed) {
  const TemporaryFolder folder;
  write_tensors(folder.path(), {{"q", matrix(1)}});
  fs::create_symlink("q.npy", folder / "k.npy");
  EXPECT_EQ(read_tensors(folder.path(), {"q", "k"}, {}).at("k").values, matrix(1).values);
}

TEST(TensorFile, files_above_the_limit_are_not_read) {
  const TemporaryFolder folder;
  write_tensors(folder.path(), {{"q", matrix(1)}});
  write_tensors(folder / "q.safetensors", {{"q", matrix(1)}});
  const auto size = static_cast<std::int64_t>(fs::file_size(folder / "q.npy"));
  EXPECT_NO_THROW(read_npy(folder / "q.npy", {.max_bytes = size}));
  expect_error(ErrorKind::input, {"at most " + std::to_string(size - 1)},
               [&] { read_npy(folder / "q.npy", {.max_bytes = size - 1}); });
  expect_error(ErrorKind::input, {"at most 10"},
               [&] { read_safetensors(folder / "q.safetensors", {.max_bytes = 10}); });
  // A sparse file of a terabyte costs its author nothing and must cost us nothing.
  put(folder / "huge.npy", "");
  std::error_code error;
  fs::resize_file(folder / "huge.npy", std::uintmax_t{1} << 40, error);
  if (!error) {
    expect_error(ErrorKind::input, {"1099511627776"}, [&] { read_npy(folder / "huge.npy"); });
  }
}

TEST(TensorFile, tensor_names_that_leave_the_folder_are_not_written) {
  const TemporaryFolder folder;
  for (const std::string name : {"../q", "a/b", "", ".hidden", ".."}) {
    expect_error(ErrorKind::usage, {"plain file name"}, [&] {
      write_tensors(folder / "out", {{name, matrix(1)}});
    });
  }
  EXPECT_EQ(folder.files().size(), 0u);
}

TEST(TensorFile, two_three_and_four_dimensions_become_batch_heads_tokens_channels) {
  const auto extents = [](std::vector<std::int64_t> shape) {
    FileTensor tensor{.dtype = DType::f32, .is_byte = false, .shape = shape, .values = {}};
    tensor.values.resize(24);
    return to_tensor(tensor, "q").extents();
  };
  EXPECT_EQ(extents({4, 6}), (Extents{1, 1, 4, 6}));
  EXPECT_EQ(extents({2, 4, 3}), (Extents{1, 2, 4, 3}));
  EXPECT_EQ(extents({2, 3, 2, 2}), (Extents{2, 3, 2, 2}));
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{}, {24}, {1, 1, 4, 3, 2}}) {
    expect_error(ErrorKind::input, {"\"q\"", "2, 3 or 4 dimensions"}, [&] { extents(shape); });
  }
  expect_error(ErrorKind::input, {"25 values"}, [&] { extents({5, 5}); });
}

TEST(TensorFile, a_tensor_goes_to_a_file_tensor_and_back) {
  Tensor<double> tensor(Extents{2, 1, 3, 2});
  for (std::size_t i = 0; i < tensor.values().size(); ++i)
    tensor.values()[i] = static_cast<double>(i);
  const FileTensor file = from_tensor(tensor, DType::bf16);
  EXPECT_EQ(file.dtype, DType::bf16);
  EXPECT_EQ(file.shape, (std::vector<std::int64_t>{2, 1, 3, 2}));
  EXPECT_EQ(to_tensor(file, "q").values(), tensor.values());
  EXPECT_EQ(to_tensor(file, "q").extents(), tensor.extents());
}

}  // namespace
}  // namespace ringlab::io
