// NumPy reads what we write, and we read what NumPy writes.
#include <sys/wait.h>

#include <numeric>

#include "reference/core/shards.h"
#include "reference/io/tensor_rows.h"
#include "tests/reference/io/io_testing.h"

namespace ringlab::io {
namespace {

constexpr const char* kPython = "/usr/bin/python3";

/// Exit status of a Python program run in `folder`.
int run_python(const std::filesystem::path& folder, const std::string& program) {
  put(folder / "program.py", program);
  const std::string command =
      "cd '" + folder.string() + "' && " + kPython + " program.py > log.txt 2>&1";
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class NumpyInterop : public testing::Test {
 protected:
  void SetUp() override {
    if (run_python(folder_.path(), "import numpy") != 0) {
      GTEST_SKIP() << kPython << " cannot import numpy";
    }
  }
  void expect_python(const std::string& program) {
    EXPECT_EQ(run_python(folder_.path(), program), 0) << get(folder_ / "log.txt");
  }
  TemporaryFolder folder_;
};

TEST_F(NumpyInterop, numpy_reads_what_we_write) {
  const std::vector<double> values = {0, -1.5, 2, 3, 4, 65504};
  NamedTensors tensors;
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    const std::vector<double> kept = dtype == DType::bf16 ? std::vector<double>(6, 1.5) : values;
    tensors[std::string(dtype_info(dtype).name)] = {
        .dtype = dtype, .is_byte = false, .shape = {1, 2, 3}, .values = kept};
  }
  tensors["bytes"] = {.dtype = DType::f32, .is_byte = true, .shape = {2}, .values = {1, 255}};
  tensors["scalar"] = {.dtype = DType::f64, .is_byte = false, .shape = {}, .values = {7}};
  tensors["empty"] = {.dtype = DType::f32, .is_byte = false, .shape = {0, 3}, .values = {}};
  write_tensors(folder_ / "out", tensors);
  expect_python(R"(
import numpy as np
for name, dtype in [('f64', '<f8'), ('f32', '<f4'), ('f16', '<f2')]:
    a = np.load('out/' + name + '.npy', allow_pickle=False)
    assert a.dtype == np.dtype(dtype) and a.shape == (1, 2, 3), (a.dtype, a.shape)
    assert a.ravel().tolist() == [0, -1.5, 2, 3, 4, 65504], a
    assert a.flags.c_contiguous
b = np.load('out/bf16.npy')
assert b.dtype == np.float32 and (b == 1.5).all()
assert np.load('out/bytes.npy').dtype == np.uint8
assert np.load('out/bytes.npy').tolist() == [1, 255]
assert np.load('out/scalar.npy').shape == () and np.load('out/scalar.npy') == 7
assert np.load('out/empty.npy').shape == (0, 3)
)");
}

TEST_F(NumpyInterop, we_read_what_numpy_writes) {
  expect_python(R"(
import numpy as np
a = np.arange(6).reshape(1, 2, 3) - 2.5
for dtype in ['f8', 'f4', 'f2']:
    np.save('in_' + dtype + '.npy', a.astype(dtype))
np.save('bool.npy', np.array([True, False]))
np.save('u1.npy', np.array([[0], [200]], dtype=np.uint8))
np.save('scalar.npy', np.float64(3.25))
np.save('empty.npy', np.zeros((0, 4), np.float32))
for version in [(1, 0), (2, 0), (3, 0)]:
    with open('version_%d.npy' % version[0], 'wb') as f:
        np.lib.format.write_array(f, a.astype('f4'), version=version)
np.save('fortran.npy', np.asfortranarray(a.astype('f4')))
np.save('big_endian.npy', a.astype('>f2'))
np.save('object.npy', np.array([{}], dtype=object), allow_pickle=True)
np.save('struct.npy', np.zeros(2, dtype=[('a', '<f4')]))
)");
  const std::vector<double> expected = {-2.5, -1.5, -0.5, 0.5, 1.5, 2.5};
  for (const std::string name : {"in_f8", "in_f4", "in_f2", "version_1", "version_2", "version_3",
                                 "fortran", "big_endian"}) {
    const FileTensor tensor = read_npy(folder_ / (name + ".npy"));
    EXPECT_EQ(tensor.shape, (std::vector<std::int64_t>{1, 2, 3})) << name;
    EXPECT_EQ(tensor.values, expected) << name;
  }
  EXPECT_EQ(read_npy(folder_ / "bool.npy").values, (std::vector<double>{1, 0}));
  EXPECT_EQ(read_npy(folder_ / "u1.npy").values, (std::vector<double>{0, 200}));
  EXPECT_EQ(read_npy(folder_ / "scalar.npy").values, std::vector<double>{3.25});
  EXPECT_EQ(read_npy(folder_ / "empty.npy").shape, (std::vector<std::int64_t>{0, 4}));
  for (const std::string name : {"object", "struct"}) {
    expect_error(ErrorKind::input, {name}, [&] { read_npy(folder_ / (name + ".npy")); });
  }
}

TEST_F(NumpyInterop, we_read_the_archives_that_numpy_writes) {
  expect_python(R"(
import numpy as np
a = np.arange(24, dtype=np.float32).reshape(1, 2, 4, 3)
np.savez('plain.NPZ.tmp', q=a, k=np.asfortranarray(a), other=np.array(['x']))
np.savez_compressed('packed.npz', q=a, k=a.astype('>f8'), other=np.zeros(1000))
import os
os.rename('plain.NPZ.tmp.npz', 'plain.NPZ')
)");
  std::vector<double> expected(24);
  std::iota(expected.begin(), expected.end(), 0.0);
  for (const std::string name : {"plain.NPZ", "packed.npz"}) {
    const NamedTensors tensors = read_tensors(folder_ / name, {"q", "k"}, {"absent"});
    ASSERT_EQ(tensors.size(), 2u) << name;
    const auto sources = open_rows(folder_ / name, {"q", "k", "absent"});
    ASSERT_EQ(sources.size(), 2u) << name;
    for (const auto& [which, tensor] : tensors) {
      EXPECT_EQ(tensor.values, expected) << name << which;
      const Positions some = Positions::from_list({1, 3});
      EXPECT_EQ(read_rows(sources.at(which), some).values(),
                shard_of<double>(to_tensor(tensor, "q").view(), some).values());
    }
    expect_error(ErrorKind::input, {name, "absent.npy"},
                 [&] { read_tensors(folder_ / name, {"absent"}, {}); });
    expect_error(ErrorKind::input, {name, "at most 100 bytes"},
                 [&] { read_tensors(folder_ / name, {"q"}, {}, {.max_bytes = 100}); });
  }
}

TEST_F(NumpyInterop, a_damaged_archive_is_an_input_error_or_gives_what_was_written) {
  expect_python(R"(
import numpy as np
np.savez_compressed('x.npz', q=np.arange(8, dtype=np.float32).reshape(4, 2))
)");
  const std::string whole = get(folder_ / "x.npz");
  const auto values = read_tensors(folder_ / "x.npz", {"q"}, {}).at("q").values;
  const auto tried = [&](const std::string& contents) {
    put(folder_ / "y.npz", contents);
    try {
      const NamedTensors tensors = read_tensors(folder_ / "y.npz", {"q"}, {});
      EXPECT_EQ(tensors.at("q").values, values);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input) << error.what();
    }
  };
  for (std::size_t i = 0; i < whole.size(); ++i) {
    tried(whole.substr(0, i));
    for (const int flip : {1, 0x80, 0xff}) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      tried(damaged);
    }
  }
}

TEST_F(NumpyInterop, a_safetensors_file_is_what_an_independent_reader_expects) {
  const FileTensor tensor{
      .dtype = DType::f32, .is_byte = false, .shape = {2, 2}, .values = {1, 2, 3, 4.5}};
  write_tensors(folder_ / "out.safetensors", {{"q", tensor}, {"k", tensor}});
  expect_python(R"(
import json, struct
import numpy as np
data = open('out.safetensors', 'rb').read()
n, = struct.unpack('<Q', data[:8])
assert (8 + n) % 8 == 0
header = json.loads(data[8:8 + n])
assert sorted(header) == ['k', 'q'], header
for e in header.values():
    assert e['dtype'] == 'F32' and e['shape'] == [2, 2]
    lo, hi = e['data_offsets']
    assert np.frombuffer(data[8 + n + lo:8 + n + hi], '<f4').tolist() == [1, 2, 3, 4.5]
)");
}

}  // namespace
}  // namespace ringlab::io
