#include "python/core/wishes.h"

#include <fmt/format.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <charconv>
#include <thread>

#include "reference/core/mask_text.h"
#include "reference/core/modifiers.h"
#include "reference/core/options/option_table.h"

namespace nb = nanobind;

namespace ringlab::python {
namespace {

using Matrix = nb::ndarray<const std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
constexpr std::string_view kMatrixName = "matrix";

[[noreturn]] void refuse_file(std::string found) {
  throw_usage_error({.where = "mask",
                     .expected = "a mask that needs no file",
                     .actual = std::move(found),
                     .hint = "Pass the matrix itself, an array of booleans (q_tokens, kv_tokens)"});
}

std::size_t matrix_number(const std::string& path, std::size_t matrices) {
  std::size_t number = matrices;
  if (path.starts_with(kMatrixName)) {
    std::from_chars(path.data() + kMatrixName.size(), path.data() + path.size(), number);
  }
  if (number < matrices) return number;
  refuse_file("\"file:" + path + "\"");
}

/// Throws an error of a mask's text that does not mention files: only the command line reads them.
[[noreturn]] void refuse_mask(ErrorParts parts) {
  constexpr std::string_view kFiles = " or file:PATH";
  const bool is_file = parts.actual.starts_with("\"file");
  if (is_file || parts.hint.find("file") != std::string::npos) refuse_file(parts.actual);
  const std::size_t files = parts.expected.find(kFiles);
  if (files != std::string::npos) parts.expected.erase(files, kFiles.size());
  throw_usage_error(std::move(parts));
}

Mask parsed_mask(const std::string& text, const LoadBits& bits) {
  try {
    return parse_mask(text, bits);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::usage) throw;
    refuse_mask(error.parts());
  }
}

/// The caller has not heard of the name that the matrix has in the mask's text.
BitMask bits_of(const Matrix& matrix, const Shape& shape) {
  const auto rows = static_cast<std::int64_t>(matrix.shape(0));
  const auto columns = static_cast<std::int64_t>(matrix.shape(1));
  if (rows != shape.q_tokens || columns != shape.kv_tokens) {
    throw_input_error(
        {.where = "mask",
         .expected = fmt::format("an array ({}, {})", shape.q_tokens, shape.kv_tokens),
         .actual = fmt::format("({}, {})", rows, columns),
         .hint = "Rows are queries, columns are keys"});
  }
  return {rows, columns, std::vector<std::uint8_t>(matrix.data(), matrix.data() + matrix.size()),
          "matrix"};
}

std::vector<double> per_head(const Wishes& wishes, const char* name, std::int64_t heads) {
  std::vector<double> numbers =
      wishes.take<std::vector<double>>(name).value_or(std::vector<double>{});
  if (numbers.size() == 1) numbers.assign(static_cast<std::size_t>(heads), numbers.front());
  return numbers;
}

bool wants_default_slopes(const Wishes& wishes) {
  if (!wishes.given("alibi") || !nb::isinstance<nb::str>(wishes.object("alibi"))) return false;
  const auto word = nb::cast<std::string>(wishes.object("alibi"));
  if (word == "default") return true;
  throw_usage_error({.where = "alibi",
                     .expected = "\"default\", or one slope per query head",
                     .actual = "\"" + word + "\""});
}

Modifiers modifiers_from(const Wishes& wishes, std::int64_t heads) {
  Modifiers modifiers;
  modifiers.softcap = wishes.take<double>("softcap").value_or(0);
  modifiers.alibi_slopes =
      wants_default_slopes(wishes) ? default_alibi_slopes(heads) : per_head(wishes, "alibi", heads);
  modifiers.sinks = per_head(wishes, "sinks", heads);
  modifiers.dropout = wishes.take<double>("dropout").value_or(0);
  if (modifiers.dropout > 0) {
    modifiers.dropout_seed = wishes.take<std::uint64_t>("dropout_seed").value_or(1);
  }
  return modifiers;
}

/// Reads one wish into the field of its option.
struct FieldReader {
  const Wishes& wishes;
  const RunOption& option;
  RunOptions& options;
  std::string name = name_of(option);

  void operator()(std::monostate) const {}
  void operator()(bool RunOptions::*field) const {
    options.*field = *wishes.take<bool>(name.c_str());
  }
  void operator()(std::uint64_t RunOptions::*field) const {
    options.*field = *wishes.take<std::uint64_t>(name.c_str());
  }
  void operator()(double RunOptions::*field) const {
    options.*field = *wishes.take<double>(name.c_str());
  }
  template <class Field>
  void operator()(const Field& field) const {
    if constexpr (std::is_member_object_pointer_v<Field>) {
      check_any_size();
      const std::int64_t number = *wishes.take<std::int64_t>(name.c_str());
      check_limit(option, static_cast<double>(number));
      options.*field = static_cast<std::remove_cvref_t<decltype(options.*field)>>(number);
    } else {
      set_word(option, *wishes.take<std::string>(name.c_str()), options);
    }
  }

  /// A whole number of Python's may be larger than any type here.
  void check_any_size() const {
    double number = 0;
    const nb::object given = wishes.object(name.c_str());
    if (!nb::isinstance<nb::int_>(given) || !nb::try_cast(given, number)) return;
    try {
      check_limit(option, number);
    } catch (const Error& error) {
      ErrorParts parts = error.parts();
      parts.actual = nb::cast<std::string>(nb::repr(given));
      throw_usage_error(std::move(parts));
    }
  }
};

}  // namespace

Mask mask_from(const Wishes& wishes, const Shape& shape) {
  const auto matrices =
      wishes.take<std::vector<Matrix>>("matrices").value_or(std::vector<Matrix>{});
  const auto bits = [&](const std::string& path) {
    return bits_of(matrices[matrix_number(path, matrices.size())], shape);
  };
  return parsed_mask(wishes.take<std::string>("mask").value_or("full"), bits)
      .bind(shape.q_tokens, shape.kv_tokens);
}

Problem problem_from(const Wishes& wishes, const Shape& shape, DType dtype) {
  Problem problem{.shape = shape, .dtype = dtype, .scale = 1, .mask = {}};
  check_problem({.shape = shape,
                 .dtype = dtype,
                 .scale = 1,
                 .mask = Mask().bind(shape.q_tokens, shape.kv_tokens)});
  problem.scale = wishes.take<double>("scale").value_or(default_scale(shape.head_dim));
  problem.mask = mask_from(wishes, shape);
  problem.modifiers = modifiers_from(wishes, shape.q_heads);
  check_problem(problem);
  return problem;
}

RunOptions options_from(const Wishes& wishes) {
  RunOptions options;
  for (const RunOption& option : run_options()) {
    if (!wishes.given(name_of(option).c_str())) continue;
    std::visit(FieldReader{wishes, option, options}, option.field);
  }
  if (!wishes.given("threads")) {
    const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    options.threads = std::max(1, cores / options.ranks);
  }
  check_limits(options);
  return options;
}

}  // namespace ringlab::python
