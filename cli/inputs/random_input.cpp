#include "cli/inputs/random_input.h"

#include <memory>
#include <utility>

#include "reference/core/rows/parallel_rows.h"

namespace ringlab::cli {
namespace {

using verify::RandomTensor;

/// Some rows of one head; the others stay zero.
template <class Element>
void fill_rows(const verify::RandomRows& random, std::int64_t batch, std::int64_t head,
               const Positions& tokens, TensorView<double> rows) {
  std::vector<Element> row(static_cast<std::size_t>(rows.extents.channels));
  for (const PositionRun& run : tokens.runs()) {
    for (std::int64_t i = 0; i < run.count; ++i) {
      const std::int64_t token = run.first + i * run.stride;
      random.fill(batch, head, token, rows.extents.channels, row.data());
      double* to = rows.data + token * rows.extents.channels;
      for (const Element x : row) *to++ = static_cast<double>(x);
    }
  }
}

/// Heads first … first+count-1 of one batch, as (1, count, tokens, channels).
struct Heads {
  RandomTensor tensor;
  std::int64_t batch = 0, first = 0, count = 1;
};
Tensor<double> make_heads(const RandomInput& input, const Heads& heads, const Positions& tokens) {
  const Extents whole = input.extents(heads.tensor);
  Tensor<double> made({1, heads.count, whole.tokens, whole.channels});
  with_element_type(input.problem.dtype, [&]<class Element>(Element) {
    for (std::int64_t i = 0; i < heads.count; ++i) {
      TensorView<double> one = made.view();
      one.data += one.offset(0, i, 0, 0);
      fill_rows<Element>({input.seed, heads.tensor}, heads.batch, heads.first + i, tokens, one);
    }
  });
  return made;
}

struct MadeGroup {
  Tensor<double> q, k, v;
};

}  // namespace

Extents RandomInput::extents(RandomTensor tensor) const {
  switch (tensor) {
    case RandomTensor::q:
      return problem.shape.q();
    case RandomTensor::k:
      return problem.shape.k();
    case RandomTensor::v:
      return problem.shape.v();
    case RandomTensor::dout:
      break;
  }
  return problem.shape.out();
}

Tensor<double> RandomInput::doubles(RandomTensor tensor, const Positions& tokens) const {
  Tensor<double> wide;
  with_element_type(problem.dtype, [&]<class Element>(Element) {
    const Tensor<Element> made = rows<Element>(tensor, tokens);
    wide = Tensor<double>(made.extents());
    for (std::size_t i = 0; i < made.values().size(); ++i) {
      wide.values()[i] = static_cast<double>(made.values()[i]);
    }
  });
  return wide;
}

verify::HeadGroupSource random_groups(const RandomInput& input,
                                      const std::vector<std::int64_t>& rows) {
  return [input, rows = Positions::from_list(rows)](std::int64_t batch, std::int64_t kv_head) {
    const Shape& shape = input.problem.shape;
    const std::int64_t group = shape.q_heads / shape.kv_heads;
    const Positions keys = Positions::all(shape.kv_tokens);
    auto made = std::make_shared<MadeGroup>();
    const auto make_part = [&](std::int64_t part) {
      if (part == 0) {
        made->k = make_heads(input, {RandomTensor::k, batch, kv_head, 1}, keys);
      } else {
        made->v = make_heads(input, {RandomTensor::v, batch, kv_head, 1}, keys);
        made->q = make_heads(input, {RandomTensor::q, batch, kv_head * group, group}, rows);
      }
    };
    parallel_rows(2, 2, [&] { return make_part; });
    verify::HeadGroup views{
        .q = made->q.view(), .k = made->k.view(), .v = made->v.view(), .owner = {}};
    views.owner = std::move(made);
    return views;
  };
}

}  // namespace ringlab::cli
