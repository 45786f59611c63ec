// Mistakes of the forms that K and V have on their way between ranks.
#include <algorithm>
#include <cmath>
#include <limits>

#include "property_tests/diagnosis/hypotheses.h"
#include "property_tests/diagnosis/order.h"
#include "reference/core/small_float.h"

namespace ringlab::verify {
namespace {

Hypothesis sent_as(DType dtype) {
  const std::string name(dtype_info(dtype).name);
  return by_model(
      {"wire.rounded_to_" + name, "K and V are rounded to " + name + " on their way between ranks"},
      [=](Model& model) {
        const auto rounded = [=](double x, auto...) { return round_to(dtype, x); };
        read_copies(model, rounded, rounded);
      });
}

void exchange_keys_and_values(Model& model) {
  if (model.shape().head_dim != model.shape().v_dim) return;
  const AttentionTensors data = model.trial.data;
  read_copies(
      model, [&](double, auto b, auto h, auto t, auto c) { return data.v(b, h, t, c); },
      [&](double, auto b, auto h, auto t, auto c) { return data.k(b, h, t, c); });
}

/// One token of one head, whose channels share a scale, and the channel that is looked at.
struct Row {
  const Tensor<double>& tensor;
  std::int64_t b, h, token, channel = 0;
};

/// The exponent of the least power of two that takes a row to the numbers of e4m3, or,
/// `by_exponent` alone, to 512 at most; or that of the first number, or of those above 0.
enum class Fit { to_448, by_exponent, first_number, above_zero };
int scale_of(const Row& row, Fit fit) {
  double largest = 0;
  for (std::int64_t c = 0; c < row.tensor.extents().channels; ++c) {
    const double x = row.tensor(row.b, row.h, row.token, c);
    const double size = fit == Fit::above_zero ? x : std::abs(x);
    if (std::isfinite(size) && (c == 0 || fit != Fit::first_number)) {
      largest = std::max(largest, size);
    }
  }
  int exponent = 0;
  const double fraction = std::frexp(largest, &exponent);
  return exponent - (fit != Fit::by_exponent && fraction > 0.875 ? 8 : 9);
}

/// x as e4m3 with a scale of 2^sent, read with one of 2^read.
double through_e4m3(double x, int sent, int read, DType dtype) {
  if (!std::isfinite(x)) return std::numeric_limits<double>::quiet_NaN();
  const double most = dtype_info(dtype).max_finite;
  const auto code = static_cast<double>(Fp8E4M3(std::ldexp(x, -sent)));
  return round_to(dtype, std::clamp(std::ldexp(code, read), -most, most));
}

/// The exponents that a row of K or V in `data` is sent and read with.
struct Exponents {
  int sent, read;
};
using ScalesOf = std::function<Exponents(const AttentionTensors& data, const Row& row)>;

/// Reads K and V of other ranks as they come in e4m3, with a scale per row.
void read_scaled(Model& model, const ScalesOf& scales_of) {
  const DType dtype = model.trial.problem.dtype;
  const AttentionTensors data = model.trial.data;
  const auto copied = [&](const Tensor<double>& tensor) {
    return [&](double x, auto b, auto h, auto t, auto c) {
      const Exponents e = scales_of(data, {tensor, b, h, t, c});
      return through_e4m3(x, e.sent, e.read, dtype);
    };
  };
  read_copies(model, copied(data.k), copied(data.v));
}

/// A mistake of subjects that send e4m3, or bytes like it.
Hypothesis on_the_wire(Suspect suspect, const std::function<void(Model&)>& edit) {
  return by_model(std::move(suspect), [=](Model& model) {
    if (!travels_exactly(model.profile)) edit(model);
  });
}

/// The token in the same row of the chunk that comes before; -1 where that has more or fewer rows.
std::vector<std::int64_t> of_the_chunk_before(const Model& model) {
  const Layout layout = key_layout(model);
  const int ranks = layout.ranks();
  const int step = model.trial.options.direction == RingDirection::next ? 1 : ranks - 1;
  std::vector<std::int64_t> before(static_cast<std::size_t>(layout.tokens()), -1);
  for (int owner = 0; owner < ranks; ++owner) {
    const auto here = layout.positions(owner).to_list();
    const auto there = layout.positions((owner + step) % ranks).to_list();
    if (here.size() != there.size()) continue;
    for (std::size_t at = 0; at < here.size(); ++at) {
      before[static_cast<std::size_t>(here[at])] = there[at];
    }
  }
  return before;
}

/// The first token of each token's chunk.
std::vector<std::int64_t> of_the_first_row(const Model& model) {
  const Layout layout = key_layout(model);
  std::vector<std::int64_t> first(static_cast<std::size_t>(layout.tokens()));
  for (int owner = 0; owner < layout.ranks(); ++owner) {
    const auto held = layout.positions(owner).to_list();
    for (const std::int64_t token : held) first[static_cast<std::size_t>(token)] = held.front();
  }
  return first;
}

int fitting(const Row& row) { return scale_of(row, Fit::to_448); }

void read_stale_scales(Model& model) {
  const std::vector<std::int64_t> before = of_the_chunk_before(model);
  const auto row_before = [&](std::int64_t token) {
    return before[static_cast<std::size_t>(token)];
  };
  read_scaled(model, [&](const AttentionTensors&, const Row& row) {
    const std::int64_t token = std::max<std::int64_t>(row_before(row.token), 0);
    return Exponents{fitting(row), fitting({row.tensor, row.b, row.h, token})};
  });
  count_pairs(model, [&](auto i, auto j) {
    const bool own = model.rank_of_query(i) == model.rank_of_key(j);
    return !own && row_before(j) < 0 ? kWild : 1.0;
  });
}

/// Reads rows with the scale of their chunk's first row; `sent_too`: they are also sent with it.
void read_first_scales(Model& model, bool sent_too) {
  const std::vector<std::int64_t> first = of_the_first_row(model);
  read_scaled(model, [&](const AttentionTensors&, const Row& row) {
    const int scale = fitting({row.tensor, 0, 0, first[static_cast<std::size_t>(row.token)]});
    return Exponents{sent_too ? scale : fitting(row), scale};
  });
}

/// Element e of a chunk of `rows` rows is read with scale e % rows, not e / channels.
void read_scales_by_remainder(Model& model) {
  const Chunks chunks(key_layout(model));
  read_scaled(model, [&](const AttentionTensors&, const Row& row) {
    const Extents& e = row.tensor.extents();
    const auto& chunk = chunks.of(model.rank_of_key(row.token));
    const std::int64_t length = std::ssize(chunk), rows = e.batch * e.heads * length;
    const std::int64_t number =
        (row.b * e.heads + row.h) * length + static_cast<std::int64_t>(chunks.row_of(row.token));
    const std::int64_t read = (number * e.channels + row.channel) % rows, head = read / length;
    return Exponents{fitting(row), fitting({row.tensor, head / e.heads, head % e.heads,
                                            chunk[static_cast<std::size_t>(read % length)]})};
  });
}

/// Rows whose scale is that of other numbers.
void read_fitted(Model& model, Fit fit) {
  read_scaled(model, [=](const AttentionTensors&, const Row& row) {
    const int scale = scale_of(row, fit);
    return Exponents{scale, scale};
  });
}

/// Scales that are taken so many times; the right way is once, and once.
void read_signed(Model& model, int sent, int read) {
  read_scaled(model, [=](const AttentionTensors&, const Row& row) {
    return Exponents{sent * fitting(row), read * fitting(row)};
  });
}

/// Reads row n of a chunk with the scale before it, among those of keys and then of values.
void read_row_before(Model& model, bool of_keys, bool of_values) {
  const Chunks chunks(key_layout(model));
  read_scaled(model, [&](const AttentionTensors& data, const Row& row) {
    const bool is_key = &row.tensor == &data.k;
    const Exponents right{fitting(row), fitting(row)};
    if (is_key ? !of_keys : !of_values) return right;
    const auto& chunk = chunks.of(model.rank_of_key(row.token));
    const Tensor<double>* tensor = &row.tensor;
    std::int64_t head = row.b * row.tensor.extents().heads + row.h;
    std::int64_t at = static_cast<std::int64_t>(chunks.row_of(row.token)) - 1;
    if (at < 0) {
      at = std::ssize(chunk) - 1;
      --head;
    }
    if (head < 0 && is_key) return right;
    if (head < 0) {
      tensor = &data.k;
      head = data.k.extents().batch * data.k.extents().heads - 1;
    }
    const std::int64_t heads = tensor->extents().heads;
    return Exponents{fitting(row), fitting({*tensor, head / heads, head % heads,
                                            chunk[static_cast<std::size_t>(at)]})};
  });
}

void read_key_scales(Model& model) {
  read_scaled(model, [](const AttentionTensors& data, const Row& row) {
    return Exponents{fitting(row), fitting({data.k, row.b, row.h, row.token})};
  });
}

}  // namespace

std::vector<Hypothesis> wire_mistakes() {
  std::vector<Hypothesis> all = {
      on_the_wire({"wire.stale_scale", "a chunk is read with the scales of the one before it"},
                  read_stale_scales),
      on_the_wire({"wire.scale_too_small",
                   "a scale takes the largest number of its row beyond what its bytes can be"},
                  [](Model& model) { read_fitted(model, Fit::by_exponent); }),
      on_the_wire({"wire.scale_of_the_first_number", "the first number of a row sets its scale"},
                  [](Model& model) { read_fitted(model, Fit::first_number); }),
      on_the_wire({"wire.scale_of_numbers_above_zero",
                   "the largest number of a row sets its scale, not the largest in size"},
                  [](Model& model) { read_fitted(model, Fit::above_zero); }),
      on_the_wire({"wire.scale_never_read", "what arrives is not multiplied by its scale again"},
                  [](Model& model) { read_signed(model, 1, 0); }),
      on_the_wire({"wire.scale_never_divided_by", "what leaves is not divided by its scale"},
                  [](Model& model) { read_signed(model, 0, 1); }),
      on_the_wire({"wire.scale_multiplied_twice",
                   "what leaves is multiplied by its scale, and not divided"},
                  [](Model& model) { read_signed(model, -1, 1); }),
      on_the_wire({"wire.scale_divided_by_twice",
                   "what arrives is divided by its scale, and not multiplied"},
                  [](Model& model) { read_signed(model, 1, -1); }),
      on_the_wire(
          {"wire.scale_of_the_row_before", "a row is read with the scale of the row before"},
          [](Model& model) { read_row_before(model, true, true); }),
      on_the_wire({"wire.scale_of_the_row_before_for_v",
                   "a row of values is read with the scale of the row before, the first one with "
                   "the last of the keys"},
                  [](Model& model) { read_row_before(model, false, true); }),
      on_the_wire({"wire.scale_of_the_first_row", "all rows of a chunk share its first scale"},
                  [](Model& model) { read_first_scales(model, true); }),
      on_the_wire(
          {"wire.read_with_the_first_scale", "all rows of a chunk are read with its first scale"},
          [](Model& model) { read_first_scales(model, false); }),
      on_the_wire({"wire.scales_by_remainder",
                   "element e of a chunk is read with scale e % rows, not e / channels"},
                  read_scales_by_remainder),
      on_the_wire({"wire.scales_of_the_keys", "values are read with the scales of the keys"},
                  read_key_scales)};
  all.push_back(sent_as(DType::f16));
  all.push_back(sent_as(DType::bf16));
  all.push_back(by_model({"wire.keys_and_values_exchanged", "K arrives as V and V as K"},
                         exchange_keys_and_values));
  return all;
}

}  // namespace ringlab::verify
