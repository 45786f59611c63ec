// Golden vectors: small problems with their correctly rounded results, in files for everybody.
//
// golden/DTYPE.safetensors holds q, k, v, do (and the bit matrix "mask", bytes), and for each case
// of kCases below "CASE/o", "CASE/lse", "CASE/dq", "CASE/dk", "CASE/dv". Scale 0.75; two query
// heads read one K/V head; two keys are equal. To write them anew run this test with
// RINGLAB_WRITE_GOLDEN=1 and then, in the folder, sha256sum *.safetensors > SHA256SUMS.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

#include "reference/attention/exact.h"
#include "reference/io/tensor_file.h"
#include "reference/precise/correctly_rounded.h"
#include "reference/precise/rounded_gradients.h"
#include "reference/precise/rounding.h"
#include "tests/printed.h"

namespace ringlab {
namespace {

const std::filesystem::path kFolder = RINGLAB_GOLDEN_FOLDER;
constexpr DType kGoldenTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16};
constexpr Shape kShape{.batch = 1,
                       .q_heads = 2,
                       .kv_heads = 1,
                       .q_tokens = 5,
                       .kv_tokens = 6,
                       .head_dim = 3,
                       .v_dim = 2};

struct GoldenCase {
  const char* name;
  const char* mask;  ///< "bits": the matrix in the file
  Modifiers modifiers = {};
};
const GoldenCase kCases[] = {
    {"full", "full"},
    {"causal", "causal"},
    {"window", "window:2,1"},
    {"documents", "documents:2,0,4"},
    {"prefix", "prefix:3"},
    {"causal_window", "causal+window:1,0"},
    {"bits", "bits"},
    {"alibi_sinks_dropout",
     "causal",
     {.alibi_slopes = {0.5, 0.0625}, .sinks = {0.25, -1}, .dropout = 0.25, .dropout_seed = 7}},
};

std::string file_of(DType dtype) {
  return (kFolder / (std::string(dtype_info(dtype).name) + ".safetensors")).string();
}

/// Inputs of one file, made or read.
struct GoldenInputs {
  Tensor<double> q, k, v, dout;
  std::vector<std::uint8_t> bits;

  AttentionInput input(DType dtype, const GoldenCase& golden) const {
    Problem problem{
        .shape = kShape, .dtype = dtype, .scale = 0.75, .mask = {}, .modifiers = golden.modifiers};
    const BitMask matrix{kShape.q_tokens, kShape.kv_tokens, bits, "golden"};
    const Mask mask = std::string(golden.mask) == "bits" ? Mask({matrix}) : parse_mask(golden.mask);
    problem.mask = mask.bind(kShape.q_tokens, kShape.kv_tokens);
    return {problem, q.view(), k.view(), v.view()};
  }
};

GoldenInputs make_inputs(DType dtype) {
  std::mt19937_64 random(2026);
  const auto fill = [&](const Extents& extents) {
    Tensor<double> tensor(extents);
    for (double& x : tensor.values()) {
      x = round_to(dtype, std::uniform_real_distribution<double>(-2, 2)(random));
    }
    return tensor;
  };
  GoldenInputs inputs{fill(kShape.q()), fill(kShape.k()), fill(kShape.v()), fill(kShape.out()), {}};
  for (std::int64_t c = 0; c < kShape.head_dim; ++c) inputs.k(0, 0, 4, c) = inputs.k(0, 0, 3, c);
  std::vector<std::uint8_t> bits(30);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = i / 6 != 2 && random() % 3 != 0;
  inputs.bits = bits;  // row 2 sees nothing
  return inputs;
}

GoldenInputs inputs_in(const io::NamedTensors& tensors) {
  const auto tensor = [&](const char* name) { return io::to_tensor(tensors.at(name), name); };
  const std::vector<double>& mask = tensors.at("mask").values;
  return {tensor("q"), tensor("k"), tensor("v"), tensor("do"),
          std::vector<std::uint8_t>(mask.begin(), mask.end())};
}

/// What the file of a dtype should hold.
io::NamedTensors computed(DType dtype, const GoldenInputs& inputs) {
  const std::vector<double> mask(inputs.bits.begin(), inputs.bits.end());
  io::NamedTensors tensors = {
      {"q", io::from_tensor(inputs.q, dtype)},
      {"k", io::from_tensor(inputs.k, dtype)},
      {"v", io::from_tensor(inputs.v, dtype)},
      {"do", io::from_tensor(inputs.dout, dtype)},
      {"mask", {.dtype = DType::f32, .is_byte = true, .shape = {5, 6}, .values = mask}}};
  for (const GoldenCase& golden : kCases) {
    const AttentionInput input = inputs.input(dtype, golden);
    const CorrectlyRounded forward =
        correctly_rounded_forward(input, {.dtype = dtype, .first_try = FirstTry::multiprecision});
    const RoundedGradients backward = rounded_backward(input, inputs.dout.view(), dtype);
    const std::string name = std::string(golden.name) + "/";
    const DType lse_dtype = dtype == DType::f64 ? DType::f64 : DType::f32;
    tensors[name + "o"] = io::from_tensor(forward.out, dtype);
    tensors[name + "lse"] = io::from_tensor(forward.lse, lse_dtype);
    tensors[name + "dq"] = io::from_tensor(backward.dq, dtype);
    tensors[name + "dk"] = io::from_tensor(backward.dk, dtype);
    tensors[name + "dv"] = io::from_tensor(backward.dv, dtype);
    EXPECT_EQ(backward.undecided, 0) << name;
  }
  return tensors;
}

class GoldenVectors : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    if (std::getenv("RINGLAB_WRITE_GOLDEN") != nullptr) {
      io::write_tensors(file_of(GetParam()), computed(GetParam(), make_inputs(GetParam())));
    }
    stored_ = io::read_safetensors(file_of(GetParam()));
    inputs_ = inputs_in(stored_);
  }
  Tensor<double> stored(const GoldenCase& golden, const char* name) const {
    const std::string full = std::string(golden.name) + "/" + name;
    return io::to_tensor(stored_.at(full), full);
  }
  io::NamedTensors stored_;
  GoldenInputs inputs_;
};

TEST_P(GoldenVectors, are_what_is_computed_today) {
  const io::NamedTensors today = computed(GetParam(), inputs_);
  ASSERT_EQ(today.size(), stored_.size());
  for (const auto& [name, tensor] : today) {
    ASSERT_TRUE(stored_.contains(name)) << name;
    EXPECT_EQ(stored_.at(name).values, tensor.values) << name;
    EXPECT_EQ(stored_.at(name).shape, tensor.shape) << name;
  }
}

/// Of a correctly rounded number: half the way to its farther neighbour.
double half_a_step(DType dtype, double x) {
  return std::max(precise::next_up(dtype, x) - x, x + precise::next_up(dtype, -x)) / 2;
}

/// |oracle - golden| <= the oracle's certified error and what rounding took.
void expect_near(DType dtype, const Tensor<double>& golden, const Tensor<double>& oracle,
                 const Tensor<double>& error, const char* what) {
  ASSERT_EQ(golden.size(), oracle.size());
  for (std::size_t i = 0; i < golden.values().size(); ++i) {
    const double x = golden.values()[i], y = oracle.values()[i];
    if (x == y) continue;
    EXPECT_LE(std::abs(x - y), (error.values()[i] + half_a_step(dtype, x)) * (1 + 0x1p-40)) << what;
  }
}

TEST_P(GoldenVectors, are_within_the_certified_error_of_the_fp64_reference) {
  const DType dtype = GetParam(), lse_dtype = dtype == DType::f64 ? DType::f64 : DType::f32;
  for (const GoldenCase& golden : kCases) {
    const AttentionInput input = inputs_.input(dtype, golden);
    const ExactForward exact = exact_forward(input);
    expect_near(dtype, stored(golden, "o"), exact.out, exact.out_error, golden.name);
    expect_near(lse_dtype, stored(golden, "lse"), exact.lse, exact.lse_error, golden.name);
    const ExactBackward back = exact_backward(input, inputs_.dout.view());
    expect_near(dtype, stored(golden, "dq"), back.dq, back.dq_error, golden.name);
    expect_near(dtype, stored(golden, "dk"), back.dk, back.dk_error, golden.name);
    expect_near(dtype, stored(golden, "dv"), back.dv, back.dv_error, golden.name);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, GoldenVectors, ::testing::ValuesIn(kGoldenTypes),
                         [](const auto& type) { return std::string(dtype_info(type.param).name); });

TEST(GoldenFiles, have_the_hashes_they_were_published_with) {
  const std::string command =
      "cd '" + kFolder.string() + "' && sha256sum --check --strict --quiet SHA256SUMS";
  const int status = std::system(command.c_str());
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << command;
}

}  // namespace
}  // namespace ringlab
