// Reading and writing some rows equals reading and writing the whole and taking those rows.
#include "reference/io/tensor_rows.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>

#include "reference/core/error.h"
#include "reference/core/layout.h"
#include "reference/core/shards.h"
#include "tests/temporary_folder.h"

namespace ringlab::io {
namespace {

namespace fs = std::filesystem;

class TensorRows : public testing::Test {
 protected:
  static Tensor<double> counting(const Extents& extents) {
    Tensor<double> tensor(extents);
    std::iota(tensor.values().begin(), tensor.values().end(), 1.0);
    return tensor;
  }
  static std::string bytes_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  TemporaryFolder folder_;
};

const std::vector<LayoutKind> kKinds = {LayoutKind::contiguous, LayoutKind::striped,
                                        LayoutKind::zigzag};

TEST_F(TensorRows, rows_read_are_the_rows_of_the_whole_in_every_layout_and_format) {
  const Tensor<double> whole = counting({2, 3, 11, 5});
  for (const char* name : {"t.safetensors", "folder"}) {
    const fs::path path = folder_ / name;
    write_tensors(path, {{"other", from_tensor(counting({1, 1, 2, 3}), DType::f16)},
                         {"q", from_tensor(whole, DType::f32)}});
    const auto sources = open_rows(path, {"q", "absent"});
    ASSERT_EQ(sources.size(), 1u);
    EXPECT_EQ(sources.at("q").extents, whole.extents());
    for (const LayoutKind kind : kKinds) {
      const Layout layout(kind, 11, 4);
      for (int rank = 0; rank < 4; ++rank) {
        EXPECT_EQ(read_rows(sources.at("q"), layout.positions(rank)).values(),
                  shard_of<double>(whole.view(), layout.positions(rank)).values());
      }
    }
    EXPECT_EQ(read_rows(sources.at("q"), Positions{}).size(), 0);
  }
}

TEST_F(TensorRows, what_several_writers_write_is_byte_for_byte_what_one_writes) {
  const Tensor<double> whole = counting({2, 3, 11, 5});
  for (const char* name : {"t.safetensors", "folder"}) {
    for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
      for (const LayoutKind kind : kKinds) {
        const fs::path one = folder_ / (std::string("one_") + name);
        const fs::path many = folder_ / (std::string("many_") + name);
        write_tensors(one, {{"o", from_tensor(whole, dtype)}});
        const std::map<std::string, PlannedTensor> planned = {{"o", {dtype, {2, 3, 11, 5}}}};
        AtomicFiles first;
        SharedOutput(many, planned, "7", first).write_preambles();
        const Layout layout(kind, 11, 14);  // some ranks hold nothing
        for (int rank = 0; rank < layout.ranks(); ++rank) {
          AtomicFiles files;
          SharedOutput writer(many, planned, "7", files);
          const Positions& positions = layout.positions(rank);
          writer.write_rows("o", shard_of<double>(whole.view(), positions), positions);
          files.leave_to_others();
        }
        first.commit();
        const bool folder = fs::is_directory(one);
        EXPECT_EQ(bytes_of(folder ? many / "o.npy" : many), bytes_of(folder ? one / "o.npy" : one));
      }
    }
  }
}

TEST_F(TensorRows, an_output_that_is_not_committed_leaves_nothing) {
  for (const char* name : {"o.safetensors", "folder/in/folder"}) {
    {
      AtomicFiles files;
      SharedOutput output(folder_ / name, {{"o", {DType::f32, {1, 1, 2, 2}}}}, "1", files);
      output.write_preambles();
      EXPECT_FALSE(fs::exists(folder_ / "o.safetensors"));
      EXPECT_FALSE(fs::is_empty(folder_.path()));
    }
    EXPECT_TRUE(fs::is_empty(folder_.path())) << name;
  }
}

TEST_F(TensorRows, an_output_of_several_follows_a_link) {
  fs::create_symlink("target.safetensors", folder_ / "link.safetensors");
  AtomicFiles files;
  SharedOutput(folder_ / "link.safetensors", {{"o", {DType::f32, {1, 1, 2, 2}}}}, "1", files)
      .write_preambles();
  files.commit();
  EXPECT_TRUE(fs::is_symlink(folder_ / "link.safetensors"));
  EXPECT_TRUE(fs::is_regular_file(folder_ / "target.safetensors"));
}

TEST_F(TensorRows, files_cut_anywhere_are_input_errors) {
  const fs::path path = folder_ / "t.safetensors";
  write_tensors(path, {{"q", from_tensor(counting({1, 1, 4, 2}), DType::f32)}});
  const std::string whole = bytes_of(path);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, length);
    EXPECT_THROW(open_rows(path, {"q"}), Error) << length;
  }
}

}  // namespace
}  // namespace ringlab::io
