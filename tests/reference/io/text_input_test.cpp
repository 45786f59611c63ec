#include "reference/io/text_input.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "tests/reference/io/io_testing.h"

namespace ringlab::io {
namespace {

const std::string kText =
    "Call me Ishmael. Some years ago - never mind how long precisely - having little or no money "
    "in my purse, and nothing particular to interest me on shore, I thought I would sail about a "
    "little and see the watery part of the world. It is a way I have of driving off the spleen "
    "and regulating the circulation.";

double dot(const Tensor<double>& a, std::int64_t i, const Tensor<double>& b, std::int64_t j) {
  double sum = 0;
  for (std::int64_t c = 0; c < a.extents().channels; ++c) sum += a(0, 0, i, c) * b(0, 0, j, c);
  return sum;
}

/// FNV-1a over the bits of all values.
std::uint64_t fingerprint(const AttentionTensors& tensors) {
  std::uint64_t hash = 0xcbf29ce484222325ull;
  for (const Tensor<double>* tensor : {&tensors.q, &tensors.k, &tensors.v}) {
    for (const double value : tensor->values()) {
      hash = (hash ^ std::bit_cast<std::uint64_t>(value)) * 0x100000001b3ull;
    }
  }
  return hash;
}

TEST(TextInput, shapes_scale_and_mask_make_a_problem) {
  const TextInput input = text_input_from_bytes(
      kText, {.max_tokens = 20, .q_heads = 6, .kv_heads = 3, .head_dim = 5, .v_dim = 7});
  EXPECT_NO_THROW(check_problem(input.problem));
  EXPECT_EQ(input.tokens, 20);
  EXPECT_EQ(input.file_bytes, std::ssize(kText));
  EXPECT_EQ(input.tensors.q.extents(), (Extents{1, 6, 20, 5}));
  EXPECT_EQ(input.tensors.k.extents(), (Extents{1, 3, 20, 5}));
  EXPECT_EQ(input.tensors.v.extents(), (Extents{1, 3, 20, 7}));
  EXPECT_EQ(input.problem.shape.q(), input.tensors.q.extents());
  EXPECT_DOUBLE_EQ(input.problem.scale, 1 / std::sqrt(5.0));
  EXPECT_EQ(input.problem.mask.count_all(), 400);
}

TEST(TextInput, a_short_text_gives_as_many_tokens_as_bytes) {
  for (const std::int64_t length : {1, 2, 9}) {
    const std::string text = kText.substr(0, static_cast<std::size_t>(length));
    EXPECT_EQ(text_input_from_bytes(text, {.max_tokens = 100}).tokens, length);
  }
}

TEST(TextInput, every_value_is_representable_in_the_dtype) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    const TextInput input = text_input_from_bytes(kText, {.max_tokens = 30, .dtype = dtype});
    for (const Tensor<double>* tensor : {&input.tensors.q, &input.tensors.k, &input.tensors.v}) {
      for (const double value : tensor->values()) ASSERT_EQ(value, round_to(dtype, value));
    }
  }
}

TEST(TextInput, the_numbers_are_the_same_on_every_machine) {
  const TextInput f64 = text_input_from_bytes(kText, {.max_tokens = 300, .dtype = DType::f64});
  EXPECT_EQ(fingerprint(f64.tensors), 3833781953135263025ull);
  const TextInput bf16 = text_input_from_bytes(
      kText, {.max_tokens = 64, .head_dim = 7, .v_dim = 3, .seed = 9, .dtype = DType::bf16});
  EXPECT_EQ(fingerprint(bf16.tensors), 6083571068171522853ull);
}

TEST(TextInput, seeds_heads_and_tensors_differ) {
  const TextInput one = text_input_from_bytes(kText, {.max_tokens = 40, .seed = 1});
  const TextInput two = text_input_from_bytes(kText, {.max_tokens = 40, .seed = 2});
  EXPECT_NE(one.tensors.q.values(), two.tensors.q.values());
  EXPECT_NE(one.tensors.v.values(), two.tensors.v.values());
  EXPECT_NE(one.tensors.q(0, 0, 3, 0), one.tensors.q(0, 1, 3, 0));
  EXPECT_NE(one.tensors.q(0, 0, 3, 0), one.tensors.k(0, 0, 3, 0));
}

TEST(TextInput, values_depend_on_the_byte_alone_and_scores_on_the_distance) {
  const TextInput input = text_input_from_bytes("abcabcabc", {.dtype = DType::f64});
  const AttentionTensors& t = input.tensors;
  for (std::int64_t c = 0; c < 32; ++c) EXPECT_EQ(t.v(0, 0, 1, c), t.v(0, 0, 7, c));
  // Rotary: the score of (a at 0, b at 1) is that of (a at 6, b at 7), and not that of (a, b at 4).
  EXPECT_NEAR(dot(t.q, 0, t.k, 1), dot(t.q, 6, t.k, 7), 1e-12);
  EXPECT_GT(std::abs(dot(t.q, 0, t.k, 1) - dot(t.q, 0, t.k, 4)), 1e-3);
}

TEST(TextInput, rotary_turns_are_right_far_into_a_long_text) {
  constexpr std::int64_t kFar = 70001;
  const std::string text(kFar + 1, 'x');
  const TextInput input = text_input_from_bytes(
      text,
      {.max_tokens = kFar + 1, .q_heads = 1, .kv_heads = 1, .head_dim = 6, .dtype = DType::f64});
  const Tensor<double>& q = input.tensors.q;
  for (std::int64_t pair = 0; pair < 3; ++pair) {
    const long double angle = kFar * std::pow(10000.0L, -2.0L * pair / 6);
    const double a = q(0, 0, 0, 2 * pair), b = q(0, 0, 0, 2 * pair + 1);
    const double c = static_cast<double>(std::cos(angle)), s = static_cast<double>(std::sin(angle));
    EXPECT_NEAR(q(0, 0, kFar, 2 * pair), a * c - b * s, 1e-13);
    EXPECT_NEAR(q(0, 0, kFar, 2 * pair + 1), a * s + b * c, 1e-13);
  }
}

TEST(TextInput, attention_is_neither_uniform_nor_on_one_key) {
  for (const std::int64_t head_dim : {16, 32, 128}) {
    const TextInput input = text_input_from_bytes(kText, {.max_tokens = 300, .head_dim = head_dim});
    const std::int64_t n = input.tokens;
    double mean_keys = 0;  // 1 / Σ w²: as many equal weights would give the same sum
    for (std::int64_t i = 0; i < n; ++i) {
      double sum = 0, squares = 0;
      for (std::int64_t j = 0; j < n; ++j) {
        const double w =
            std::exp(input.problem.scale * dot(input.tensors.q, i, input.tensors.k, j));
        sum += w;
        squares += w * w;
      }
      mean_keys += sum * sum / squares / static_cast<double>(n);
    }
    EXPECT_GT(mean_keys, 4) << head_dim;
    EXPECT_LT(mean_keys, 0.5 * static_cast<double>(n)) << head_dim;
  }
}

TEST(TextInput, files_are_read_up_to_the_tokens_needed) {
  const TemporaryFolder folder;
  put(folder / "text.txt", kText);
  const TextOptions options{.max_tokens = 25};
  const TextInput input = text_input((folder / "text.txt").string(), options);
  EXPECT_EQ(input.tokens, 25);
  EXPECT_EQ(input.file_bytes, std::ssize(kText));
  EXPECT_EQ(input.tensors.q.values(), text_input_from_bytes(kText, options).tensors.q.values());
}

TEST(TextInput, missing_empty_and_odd_files_are_input_errors) {
  const TemporaryFolder folder;
  put(folder / "empty.txt", "");
  const auto read = [&](const std::string& name) { text_input((folder / name).string(), {}); };
  expect_error(ErrorKind::input, {"empty.txt", "an empty file"}, [&] { read("empty.txt"); });
  expect_error(ErrorKind::input, {"missing.txt"}, [&] { read("missing.txt"); });
  expect_error(ErrorKind::input, {"a directory"}, [&] { read("."); });
  expect_error(ErrorKind::input, {"one byte"}, [] { text_input_from_bytes("", {}); });
}

TEST(TextInput, options_that_make_no_sense_are_usage_errors) {
  for (const TextOptions& options :
       {TextOptions{.max_tokens = 0}, TextOptions{.q_heads = 0}, TextOptions{.kv_heads = -1},
        TextOptions{.head_dim = 0}, TextOptions{.v_dim = 0},
        TextOptions{.q_heads = 4, .kv_heads = 3}}) {
    expect_error(ErrorKind::usage, {}, [&] { text_input_from_bytes(kText, options); });
  }
}

}  // namespace
}  // namespace ringlab::io
