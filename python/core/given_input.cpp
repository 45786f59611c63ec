#include "python/core/given_input.h"

#include <string>

#include "reference/core/checks.h"

namespace nb = nanobind;

namespace ringlab::python {
namespace {

GivenArray array_named(const nb::dict& arrays, const char* name, DType bits_as) {
  return checked_array(name, nb::object(arrays[name]), bits_as);
}

void check_same_dtype(const char* name, DType dtype, DType expected) {
  if (dtype == expected) return;
  throw_input_error({.where = name,
                     .expected = "the dtype of q, " + std::string(dtype_info(expected).name),
                     .actual = std::string(dtype_info(dtype).name),
                     .hint = "Convert it first."});
}

Shape shape_of(const GivenInput& given) {
  const Extents &q = given.q.extents, &k = given.k.extents, &v = given.v.extents;
  return {.batch = q.batch,
          .q_heads = q.heads,
          .kv_heads = k.heads,
          .q_tokens = q.tokens,
          .kv_tokens = k.tokens,
          .head_dim = q.channels,
          .v_dim = v.channels};
}

void check_shapes(const GivenInput& given, const Shape& shape) {
  check_extents("k", given.k.extents, shape.k());
  check_extents("v", given.v.extents, shape.v());
  if (given.dout) check_extents("dout", given.dout->extents, shape.out());
}

}  // namespace

GivenInput given_input(const nb::dict& arrays, const Wishes& wishes) {
  const DType bits_as = wishes.take<bool>("bf16").value_or(false) ? DType::bf16 : DType::f32;
  GivenInput given{.q = array_named(arrays, "q", bits_as),
                   .k = array_named(arrays, "k", bits_as),
                   .v = array_named(arrays, "v", bits_as),
                   .problem = {}};
  if (arrays.contains("dout")) given.dout = array_named(arrays, "dout", bits_as);
  check_same_dtype("k", given.k.dtype, given.q.dtype);
  check_same_dtype("v", given.v.dtype, given.q.dtype);
  if (given.dout) check_same_dtype("dout", given.dout->dtype, given.q.dtype);
  const Shape shape = shape_of(given);
  check_shapes(given, shape);
  given.problem = problem_from(wishes, shape, given.q.dtype);
  return given;
}

AttentionInput WidenedInput::input() const {
  AttentionInput input{problem, q.view(), k.view(), v.view()};
  if (dout) input.dout = dout->view();
  return input;
}

WidenedInput widened(const GivenInput& given) {
  WidenedInput wide{.q = widened(given.q),
                    .k = widened(given.k),
                    .v = widened(given.v),
                    .problem = given.problem};
  if (given.dout) wide.dout = widened(*given.dout);
  return wide;
}

}  // namespace ringlab::python
