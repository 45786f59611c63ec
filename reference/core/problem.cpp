#include "reference/core/problem.h"

#include <cmath>
#include <initializer_list>
#include <string>

#include "reference/core/error.h"

namespace ringlab {
namespace {

struct NamedExtent {
  const char* name;
  std::int64_t value;
  std::int64_t least;
};

void check_extents(const Shape& shape) {
  for (const NamedExtent& extent :
       std::initializer_list<NamedExtent>{{"batch", shape.batch, 0},
                                          {"q_heads", shape.q_heads, 1},
                                          {"kv_heads", shape.kv_heads, 1},
                                          {"q_tokens", shape.q_tokens, 0},
                                          {"kv_tokens", shape.kv_tokens, 0},
                                          {"head_dim", shape.head_dim, 1},
                                          {"v_dim", shape.v_dim, 1}}) {
    if (extent.value < extent.least) {
      throw_input_error({.where = extent.name,
                         .expected = "at least " + std::to_string(extent.least),
                         .actual = std::to_string(extent.value)});
    }
  }
  for (const Extents& extents : {shape.q(), shape.k(), shape.v(), shape.out()}) {
    checked_size(extents);
  }
  std::int64_t pairs = 0;
  if (!__builtin_mul_overflow(shape.q_tokens, shape.kv_tokens, &pairs)) return;
  throw_input_error({.where = "tokens",
                     .expected = "fewer than 2^63 pairs of queries and keys",
                     .actual = std::to_string(shape.q_tokens) + " queries and " +
                               std::to_string(shape.kv_tokens) + " keys",
                     .hint = "Use fewer tokens"});
}

void check_heads(const Shape& shape) {
  if (shape.q_heads % shape.kv_heads == 0) return;
  throw_input_error(
      {.where = "q_heads",
       .expected = "a multiple of the " + std::to_string(shape.kv_heads) + " K/V heads",
       .actual = std::to_string(shape.q_heads),
       .hint = "Grouped queries share one K/V head per group of equal size"});
}

void check_mask_lengths(const Problem& problem) {
  const Shape& shape = problem.shape;
  const Mask& mask = problem.mask;
  if (mask.q_tokens() == shape.q_tokens && mask.kv_tokens() == shape.kv_tokens) return;
  const auto lengths = [](std::int64_t queries, std::int64_t keys) {
    return std::to_string(queries) + " queries and " + std::to_string(keys) + " keys";
  };
  throw_input_error({.where = "mask " + mask.text(),
                     .expected = "bound to " + lengths(shape.q_tokens, shape.kv_tokens),
                     .actual = lengths(mask.q_tokens(), mask.kv_tokens()),
                     .hint = "Call Mask::bind with the lengths of the problem"});
}

}  // namespace

double default_scale(std::int64_t head_dim) {
  if (head_dim < 1) {
    throw_input_error(
        {.where = "head_dim", .expected = "at least 1", .actual = std::to_string(head_dim)});
  }
  return 1.0 / std::sqrt(static_cast<double>(head_dim));
}

void check_problem(const Problem& problem) {
  check_extents(problem.shape);
  check_heads(problem.shape);
  with_element_type(problem.dtype, [](auto) {});
  if (!std::isfinite(problem.scale)) {
    throw_input_error(
        {.where = "scale", .expected = "a finite number", .actual = std::to_string(problem.scale)});
  }
  check_mask_lengths(problem);
  check_modifiers(problem.modifiers, problem.shape);
}

}  // namespace ringlab
