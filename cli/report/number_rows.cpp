// The numbers of a case that is small enough to be worked out by hand.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/report/hop_map.h"
#include "cli/report/wrong_answer.h"
#include "property_tests/laws/trial.h"

namespace ringlab::report {
namespace {

constexpr std::int64_t kMostTokens = 6;  // queries and keys together
constexpr std::int64_t kMostChannels = 2;
constexpr std::size_t kTitle = 17;
constexpr std::size_t kWidest = 88;  // beside the titles of an answer

bool is_small(const verify::Case& c) {
  const Shape& s = c.shape;
  return s.batch == 1 && s.q_heads == 1 && std::max(s.head_dim, s.v_dim) <= kMostChannels &&
         s.q_tokens > 0 && s.kv_tokens > 0 && s.q_tokens + s.kv_tokens <= kMostTokens &&
         !c.modifiers.any();
}

std::string number(double x) { return fmt::format("{:.6g}", x); }
std::string short_number(double x) { return fmt::format("{:.3g}", x); }

/// "2" or "(2, -1)".
std::string row_of(const Tensor<double>& x, std::int64_t token) {
  const std::int64_t channels = x.extents().channels;
  if (channels == 1) return number(x(0, 0, token, 0));
  return fmt::format("({}, {})", number(x(0, 0, token, 0)), number(x(0, 0, token, 1)));
}

std::string title(const char* what, std::int64_t token, const verify::Case& c, int rank) {
  const std::string name = c.ranks > 1 ? fmt::format("{} {} (rank {})", what, token, rank)
                                       : fmt::format("{} {}", what, token);
  return fmt::format("{:<{}}", name, kTitle);
}

/// One query worked out; "." for keys that it does not see.
struct Worked {
  std::string scores_and_weights, o, lse;
};
Worked attention_of(const verify::Trial& trial, std::int64_t query) {
  const Shape& s = trial.shape();
  std::vector<double> scores;
  double top = -std::numeric_limits<double>::infinity(), sum = 0;
  for (std::int64_t key = 0; key < s.kv_tokens; ++key) {
    double dot = 0;
    for (std::int64_t c = 0; c < s.head_dim; ++c) {
      dot += trial.data.q(0, 0, query, c) * trial.data.k(0, 0, key, c);
    }
    const bool seen = trial.problem.mask.allows(query, key);
    scores.push_back(seen ? trial.problem.scale * dot : std::nan(""));
    if (seen) top = std::max(top, scores.back());
  }
  std::vector<std::string> score_words, weight_words;
  Tensor<double> o({1, 1, 1, s.v_dim});
  for (const double score : scores) {
    if (!std::isnan(score)) sum += std::exp(score - top);
  }
  for (std::int64_t key = 0; key < s.kv_tokens; ++key) {
    const double score = scores[static_cast<std::size_t>(key)];
    const bool seen = !std::isnan(score);
    const double weight = seen ? std::exp(score - top) / sum : 0;
    score_words.push_back(seen ? short_number(score) : ".");
    weight_words.push_back(seen ? short_number(weight) : ".");
    for (std::int64_t c = 0; seen && c < s.v_dim; ++c) {
      o(0, 0, 0, c) += weight * trial.data.v(0, 0, key, c);
    }
  }
  return {fmt::format("scores {}   weights {}", fmt::join(score_words, " "),
                      fmt::join(weight_words, " ")),
          "o " + row_of(o, 0), "lse " + number(top + std::log(sum))};
}

/// "got (2, -1!)" for a row with wrong numbers; else nothing.
std::string got_row(const Tensor<double>& got, const Tensor<double>& off, std::int64_t query) {
  std::vector<std::string> words;
  bool is_off = false;
  for (std::int64_t c = 0; c < got.extents().channels; ++c) {
    const bool wrong = off(0, 0, query, c) != 0;
    is_off |= wrong;
    words.push_back(number(got(0, 0, query, c)) + (wrong ? "!" : ""));
  }
  if (!is_off) return "";
  return words.size() == 1 ? "   got " + words.front()
                           : fmt::format("   got ({})", fmt::join(words, ", "));
}

}  // namespace

std::vector<std::string> number_rows(const verify::Case& shown,
                                     const std::optional<verify::Element>& marked,
                                     const std::optional<verify::ShownAnswer>& answer) {
  if (!is_small(shown)) return {};
  const verify::Trial trial = verify::make_trial(shown);
  const HopMap hops(shown);
  std::vector<std::string> rows;
  for (std::int64_t key = 0; key < shown.shape.kv_tokens; ++key) {
    rows.push_back(
        title("key", key, shown, hops.key_rank(key)) +
        fmt::format(" k {:<9} v {}", row_of(trial.data.k, key), row_of(trial.data.v, key)));
  }
  for (std::int64_t query = 0; query < shown.shape.q_tokens; ++query) {
    const bool wrong = marked && marked->token == query && !marks_a_key(marked);
    const std::string begin = title("query", query, shown, hops.query_rank(query)) +
                              fmt::format(" q {:<9} ", row_of(trial.data.q, query));
    const Worked worked = attention_of(trial, query);
    const std::string got = answer ? got_row(answer->got.out, answer->off.out, query) : "",
                      got_lse = answer ? got_row(answer->got.lse, answer->off.lse, query) : "";
    const std::string end = worked.o + got + (wrong ? "   <- wrong" : "");
    const std::string in_one = begin + worked.scores_and_weights + "   " + end;
    if (in_one.size() <= kWidest) {
      rows.push_back(in_one);
    } else {
      rows.push_back(begin + end);
      rows.push_back(std::string(kTitle + 1, ' ') + worked.scores_and_weights);
    }
    if (!got_lse.empty()) rows.push_back(std::string(kTitle + 1, ' ') + worked.lse + got_lse);
  }
  const bool fits =
      std::ranges::all_of(rows, [](const std::string& row) { return row.size() <= kWidest; });
  if (!fits) return {};
  return rows;
}

}  // namespace ringlab::report
