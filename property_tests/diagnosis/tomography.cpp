#include "property_tests/diagnosis/tomography.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "property_tests/diagnosis/order.h"

namespace ringlab::verify {
namespace {

/// The least difference of weights that can be seen: in bf16 it is four of its units.
double noticeable(DType dtype) { return dtype == DType::bf16 ? 0x1p-6 : 0x1p-9; }
/// Weights below this are not looked at: they may be rounded or flushed.
constexpr double kSmallest = 1e-4;
constexpr std::size_t kMostFindings = 6;

/// One run with rows first … first+v_dim-1 of the identity as values: O is then that slice of P.
Tensor<double> slice_of_softmax(const Subject& subject, Trial trial, std::int64_t first) {
  trial.data.v = mapped(
      trial.data.v, [&](double, auto, auto, auto j, auto c) { return j == first + c ? 1.0 : 0.0; });
  return attend(subject, trial).out;
}

Tensor<double> exact_softmax(const Model& model) {
  return mapped(model.score, [&](double score, auto b, auto h, auto i, auto j) {
    if (model.in_sum(b, h, i, j) == 0) return 0.0;
    double top = score, sum = 0;
    for (std::int64_t other = 0; other < model.shape().kv_tokens; ++other) {
      if (model.in_sum(b, h, i, other) != 0) top = std::max(top, model.score(b, h, i, other));
    }
    for (std::int64_t other = 0; other < model.shape().kv_tokens; ++other) {
      if (model.in_sum(b, h, i, other) == 0) continue;
      sum += std::exp(model.score(b, h, i, other) - top);
    }
    if (model.sink_counts(b, h, i, 0) != 0) {
      sum += std::exp(model.trial.problem.modifiers.sinks[static_cast<std::size_t>(h)] - top);
    }
    return model.in_acc(b, h, i, j) * std::exp(score - top) / sum;
  });
}

/// The weight that one query gives the keys of one chunk or tile.
struct Share {
  double got = 0, exact = 0;
  double least = HUGE_VAL, most = -HUGE_VAL;  ///< ratio of single keys
  std::int64_t first = -1, last = -1;
  bool constant() const { return most - least <= 0.02 * std::abs(most) + 1e-3; }
  double ratio() const { return got / exact; }
};

struct AnswerRow {
  std::int64_t b, h, i;
};

Share share_of(const Tomography& t, const AnswerRow& row, const std::vector<std::int64_t>& keys) {
  Share share;
  for (const std::int64_t j : keys) {
    const double exact = t.exact(row.b, row.h, row.i, j), got = t.got(row.b, row.h, row.i, j);
    if (exact < kSmallest) continue;
    share.first = share.first < 0 ? j : std::min(share.first, j);
    share.last = std::max(share.last, j);
    share.got += got;
    share.exact += exact;
    share.least = std::min(share.least, got / exact);
    share.most = std::max(share.most, got / exact);
  }
  return share;
}

/// True when `relative` is the factor that a missed rescale leaves: e^(m_new - m_old), relative to
/// that of the last piece.
bool is_missed_rescale(const std::vector<double>& maxima, std::size_t at, double relative) {
  return maxima.back() > maxima[at] &&
         std::abs(std::log(relative) - (maxima.back() - maxima[at])) < 0.05;
}

/// Finds the pieces of one row whose keys all have the same wrong factor, for a mistake that befell
/// a chunk or tile as a whole.
void look_at_row(const Model& model, const Tomography& t, const AnswerRow& row, Piece piece,
                 std::vector<std::string>& findings) {
  const auto pieces = key_pieces(model, row.i, KeyOrder::by_hop, piece);
  const std::vector<double> maxima = running_maxima(model, row.b, row.h, row.i, pieces);
  std::vector<Share> shares;
  for (const auto& keys : pieces) shares.push_back(share_of(t, row, keys));
  const auto last = std::ranges::find_if(shares.rbegin(), shares.rend(),
                                         [](const Share& share) { return share.exact > 0; });
  for (std::size_t at = 0; at < pieces.size() && findings.size() < kMostFindings; ++at) {
    const Share& share = shares[at];
    if (share.exact == 0 || std::isnan(share.got) || !share.constant()) continue;
    if (std::abs(share.ratio() - 1) < noticeable(t.trial.problem.dtype)) continue;
    const int owner = model.rank_of_key(share.first);
    const double relative = last->got > 0 ? share.ratio() / last->ratio() : 0;
    std::string text = fmt::format(
        "keys {}..{} (rank {}, step {} of the ring) carry {:.3g} of their weight for query {} of "
        "head {}",
        share.first, share.last, owner, model.hop(row.i, share.first), share.ratio(), row.i, row.h);
    if (share.got == 0) text += ": they are lost";
    if (relative > 0 && is_missed_rescale(maxima, at, relative)) {
      text += fmt::format(
          "; relative to the last keys that is {:.3g} = e^(m_new - m_old): a rescale was missed",
          relative);
    }
    findings.push_back(text);
  }
}

/// Finds weight where the mask allows none, and numbers that are NaN.
void look_at_hidden(const Tomography& t, std::vector<std::string>& findings) {
  for_each_index(t.got.extents(), [&](auto b, auto h, auto i, auto j) {
    if (findings.size() >= kMostFindings) return;
    const char mark = softmax_mark(t.got(b, h, i, j), t.exact(b, h, i, j));
    if (mark == '!') {
      findings.push_back(
          fmt::format("query {} of head {} gives {:.3g} to key {}, which it must not see", i, h,
                      t.got(b, h, i, j), j));
    }
    if (mark == '?') {
      findings.push_back(
          fmt::format("the weight of key {} for query {} of head {} is no number", j, i, h));
    }
  });
}

}  // namespace

char softmax_mark(double got, double exact) {
  if (std::isnan(got)) return '?';
  if (exact == 0) return got > kSmallest ? '!' : ' ';
  if (exact < kSmallest) return '=';
  if (got == 0) return '0';
  const double ratio = got / exact;
  return ratio < 1 - 0x1p-6 ? '-' : ratio > 1 + 0x1p-6 ? '+' : '=';
}

Tomography read_softmax(const Subject& subject, const Trial& trial) {
  const Model model = make_model(trial, subject.profile(trial.problem, trial.options));
  Tomography t{trial, Tensor<double>(model.score.extents()), exact_softmax(model), {}};
  const std::int64_t keys = trial.shape().kv_tokens, channels = trial.shape().v_dim;
  for (std::int64_t first = 0; first < keys; first += channels) {
    const Tensor<double> slice = slice_of_softmax(subject, trial, first);
    for_each_index(slice.extents(), [&](auto b, auto h, auto i, auto c) {
      if (first + c < keys) t.got(b, h, i, first + c) = slice(b, h, i, c);
    });
  }
  for (const Piece piece : {Piece::chunk, Piece::tile}) {
    if (!t.findings.empty()) break;
    for_each_index(trial.shape().lse(), [&](auto b, auto h, auto i, auto) {
      look_at_row(model, t, {b, h, i}, piece, t.findings);
    });
  }
  look_at_hidden(t, t.findings);
  return t;
}

std::string softmax_picture(const Tomography& t, std::int64_t batch, std::int64_t head,
                            std::int64_t most) {
  const std::int64_t queries = t.got.extents().tokens, keys = t.got.extents().channels;
  const std::int64_t down = std::max<std::int64_t>(1, (queries + most - 1) / most);
  const std::int64_t across = std::max<std::int64_t>(1, (keys + most - 1) / most);
  constexpr std::string_view kWorst = "?!0-+= ";  // of a block the leftmost that occurs
  std::string text;
  for (std::int64_t i = 0; i < queries; i += down) {
    for (std::int64_t j = 0; j < keys; j += across) {
      std::size_t worst = kWorst.size() - 1;
      for (std::int64_t y = i; y < std::min(i + down, queries); ++y) {
        for (std::int64_t x = j; x < std::min(j + across, keys); ++x) {
          const char mark = softmax_mark(t.got(batch, head, y, x), t.exact(batch, head, y, x));
          worst = std::min(worst, kWorst.find(mark));
        }
      }
      text += kWorst[worst];
    }
    text += '\n';
  }
  return text;
}

}  // namespace ringlab::verify
