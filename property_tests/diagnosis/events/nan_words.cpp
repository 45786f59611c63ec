#include "property_tests/diagnosis/events/nan_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "property_tests/diagnosis/order.h"
#include "reference/core/unwritten.h"

namespace ringlab::verify {
namespace {

struct NanRow {
  std::int64_t batch, head, query;
};

std::vector<NanRow> nan_rows(const Evidence& evidence) {
  std::vector<NanRow> rows;
  const AttentionOutput& got = evidence.got;
  const AttentionOutput& truth = evidence.truth.output;
  for_each_index(got.lse.extents(), [&](auto b, auto h, auto i, auto) {
    bool is_nan = std::isnan(got.lse(b, h, i, 0)) && !std::isnan(truth.lse(b, h, i, 0));
    for (std::int64_t c = 0; c < got.out.extents().channels; ++c) {
      is_nan |= std::isnan(got.out(b, h, i, c)) && !std::isnan(truth.out(b, h, i, c));
    }
    if (is_nan) rows.push_back({b, h, i});
  });
  return rows;
}

/// The running maxima of a row: its largest score after each piece of its keys.
std::vector<double> maxima(const Model& model, const NanRow& row, Piece piece) {
  return running_maxima(model, row.batch, row.head, row.query,
                        key_pieces(model, row.query, KeyOrder::by_hop, piece));
}

double largest_score(const Model& model, const NanRow& row) {
  return verify::largest_score(model, row.batch, row.head, row.query);
}

bool sees_nothing(const Model& model, const NanRow& row) {
  return largest_score(model, row) == kNoScore;
}

bool first_chunk_is_hidden(const Model& model, const NanRow& row) {
  const std::vector<double> tops = maxima(model, row, Piece::chunk);
  return !tops.empty() && tops.front() == kNoScore;
}

bool first_tile_is_hidden(const Model& model, const NanRow& row) {
  const std::vector<double> tops = maxima(model, row, Piece::tile);
  return !tops.empty() && tops.front() == kNoScore;
}

bool some_chunk_is_hidden(const Model& model, const NanRow& row) {
  const auto chunks = key_pieces(model, row.query, KeyOrder::by_hop, Piece::chunk);
  return std::ranges::any_of(chunks, [&](const std::vector<std::int64_t>& chunk) {
    return running_maxima(model, row.batch, row.head, row.query, {chunk}).front() == kNoScore;
  });
}

double range_of_exp(const Model& model) {
  return model.trial.problem.dtype == DType::f64 ? 709 : 88;
}

bool overflows(const Model& model, const NanRow& row) {
  return largest_score(model, row) > range_of_exp(model);
}

bool underflows(const Model& model, const NanRow& row) {
  return largest_score(model, row) < -range_of_exp(model);
}

bool rises_far(const Model& model, const NanRow& row) {
  const std::vector<double> tops = maxima(model, row, Piece::key);
  const auto first = std::ranges::find_if(tops, [](double top) { return top != kNoScore; });
  return first != tops.end() && tops.back() - *first > range_of_exp(model);
}

/// A property that all NaN rows may share, in words; the most telling one comes first.
struct Words {
  bool (*fits)(const Model&, const NanRow&);
  const char* text;
};
constexpr Words kWords[] = {
    {sees_nothing, "no key is seen: 0/0, or (-inf) - (-inf)"},
    {first_chunk_is_hidden, "no key of the first chunk is seen: (-inf) - (-inf), or 0/0"},
    {first_tile_is_hidden, "no key of the first tile is seen: (-inf) - (-inf), or 0/0"},
    {some_chunk_is_hidden, "no key of some chunk is seen: (-inf) - (-inf)"},
    {overflows, "the largest score is beyond the range of e^x: inf/inf"},
    {underflows, "every score is so low that e^s is 0: 0/0"},
    {rises_far, "a later score is so far above the first that e^(s - first) overflows: inf/inf"},
};

bool are_finite(const AttentionTensors& data) {
  return std::ranges::all_of(std::array{&data.q, &data.k, &data.v}, [](const auto* tensor) {
    return std::ranges::all_of(tensor->values(), [](double x) { return std::isfinite(x); });
  });
}

}  // namespace

const Suspect kNeverWritten{"out.never_written", "some rows of O or lse are never written"};

bool are_never_written(const std::vector<Evidence>& all) {
  bool some = false, others = false;
  const auto look = [&](const Tensor<double>& got, const Tensor<double>& right,
                        const Tensor<double>& room) {
    for (std::size_t n = 0; n < got.values().size(); ++n) {
      const double value = got.values()[n];
      if (within(value, right.values()[n], room.values()[n])) continue;
      (is_unwritten(value) ? some : others) = true;
    }
  };
  for (const Evidence& one : all) {
    if (!one.wrong) continue;
    look(one.got.out, one.truth.output.out, one.truth.allowed.out);
    look(one.got.lse, one.truth.output.lse, one.truth.allowed.lse);
  }
  return some && !others;
}

std::string nan_words(const Evidence& evidence) {
  const std::vector<NanRow> rows = nan_rows(evidence);
  if (rows.empty()) return "";
  const Model& model = evidence.scene.right;
  std::string text = fmt::format("NaN in {} row{}, the first of them query {}", rows.size(),
                                 rows.size() == 1 ? "" : "s", rows.front().query);
  for (const Words& words : kWords) {
    const bool all =
        std::ranges::all_of(rows, [&](const NanRow& row) { return words.fits(model, row); });
    if (all) return text + ", where " + words.text;
  }
  if (!are_finite(evidence.scene.trial.data)) return text;
  return text +
         ", though every input is finite: perhaps an element past an array is read, or one "
         "that was not written yet";
}

}  // namespace ringlab::verify
