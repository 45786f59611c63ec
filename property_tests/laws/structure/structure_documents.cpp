// Packed documents: for a row, tokens of other documents and after the end do not exist.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "property_tests/generators/draws.h"
#include "property_tests/laws/structure/structure.h"
#include "property_tests/laws/two_runs.h"

namespace ringlab::verify {
namespace {

/// Random lengths that sum to `tokens`, with empty and one-token documents among them.
std::string random_documents(std::uint64_t seed, std::int64_t tokens) {
  Draws draws(seed);
  std::string text = "documents:";
  for (std::int64_t left = tokens;;) {
    const std::int64_t length =
        draws.between(0, draws.chance(33) ? std::min<std::int64_t>(1, left) : left);
    if (length == left || text.size() > 60) return text + std::to_string(left);
    text += std::to_string(length) + ",";
    left -= length;
  }
}

/// True when the last term cuts exactly `tokens` keys into documents, with causal at most before.
bool is_packing(const CaseMask& mask, std::int64_t tokens) {
  if (mask.terms().empty() || mask.terms().size() > 2) return false;
  const auto* documents = std::get_if<DocumentsMask>(&mask.terms().back());
  const bool alone = mask.terms().size() == 1;
  if (!documents || (!alone && !mask.begins_with<CausalMask>())) return false;
  const std::vector<std::int64_t>& lengths = documents->lengths;
  return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}) == tokens;
}

Case documents_case(Case c) {
  c = with_tokens(c);
  if (is_packing(c.mask, c.shape.kv_tokens)) return c;
  c.mask = (c.seed % 2 ? "causal+" : "") + random_documents(c.seed, c.shape.kv_tokens);
  return c;
}

/// The case with documents; with few queries, a border of two documents between them: keys of the
/// last queries begin behind all keys of the first.
Case documents_case_or_decoding(Case c) {
  Case few = some_with_few_queries(c);
  if (few == c) return documents_case(std::move(c));
  const Shape& s = few.shape;
  const auto behind =
      static_cast<std::int64_t>(1 + few.seed / 4 % static_cast<std::uint64_t>(s.q_tokens - 1));
  few.mask =
      fmt::format("{}documents:{},{}", few.seed % 2 ? "causal+" : "", s.kv_tokens - behind, behind);
  return few;
}

struct Document {
  std::int64_t begin = 0, end = 0;       ///< keys
  std::int64_t first_row = 0, rows = 0;  ///< queries aligned with them
};

std::vector<Document> documents_of(const Case& c) {
  std::vector<Document> documents;
  std::int64_t begin = 0;
  for (const std::int64_t length : std::get<DocumentsMask>(c.mask.terms().back()).lengths) {
    const std::int64_t first = std::max<std::int64_t>(0, begin - first_position(c));
    const std::int64_t last = std::max(first, begin + length - first_position(c));
    documents.push_back({begin, begin + length, first, last - first});
    begin += length;
  }
  return documents;
}

/// Holds because no row sees another document. Finds tiles that straddle a border and take it for
/// the tile's own.
LawResult other_documents_change_nothing(const Subject& subject, const Case& c) {
  const std::vector<Document> documents = documents_of(c);
  const Document kept = documents[Draws(c.seed).next() % documents.size()];
  return unchanged_under(
      subject, c, "all other documents",
      [&](AttentionTensors& tensors, double poison) {
        fill_tokens(tensors.q, 0, kept.first_row, poison);
        fill_tokens(tensors.q, kept.first_row + kept.rows, c.shape.q_tokens, poison);
        for (Tensor<double>* tensor : {&tensors.k, &tensors.v}) {
          fill_tokens(*tensor, 0, kept.begin, poison);
          fill_tokens(*tensor, kept.end, c.shape.kv_tokens, poison);
        }
      },
      [&kept](std::int64_t t) { return t >= kept.first_row && t < kept.first_row + kept.rows; });
}

/// Holds because no row sees another document. Finds causal positions counted from pack starts.
LawResult packed_equals_separate(const Subject& subject, const Case& c) {
  const Trial packed = make_trial(c);
  const BoundedAnswer together = run_with_bounds(subject, packed.input(), packed.options);
  const bool causal = c.mask.begins_with<CausalMask>();
  std::vector<LawResult> results;
  for (const Document& document : documents_of(c)) {
    AttentionInput alone = packed.input();
    Shape& shape = alone.problem.shape;
    shape.q_tokens = document.rows;
    shape.kv_tokens = document.end - document.begin;
    alone.problem.mask =
        (causal ? Mask({CausalMask{}}) : Mask()).bind(shape.q_tokens, shape.kv_tokens);
    alone.q = token_slice(alone.q, document.first_row, shape.q_tokens);
    alone.k = token_slice(alone.k, document.begin, shape.kv_tokens);
    alone.v = token_slice(alone.v, document.begin, shape.kv_tokens);
    results.push_back(within_both_bounds("the document of keys " + std::to_string(document.begin) +
                                             " to " + std::to_string(document.end) + " on its own",
                                         run_with_bounds(subject, alone, packed.options),
                                         row_slice(together, document.first_row, document.rows)));
  }
  return all_held(results);
}

Case padding_case(Case c) {
  c.shape.q_tokens = std::max<std::int64_t>(c.shape.q_tokens, 1);
  c.shape.kv_tokens = c.shape.q_tokens;
  if (c.mask != "causal") c.mask = "full";
  return fitted(c);
}

Tensor<double> padded(const Tensor<double>& tensor, std::int64_t tokens, double filling) {
  Extents extents = tensor.extents();
  extents.tokens = tokens;
  Tensor<double> longer(extents, filling);
  for_each_index(tensor.extents(), [&](auto b, auto h, auto t, auto ch) {
    longer(b, h, t, ch) = tensor(b, h, t, ch);
  });
  return longer;
}

/// Pads to a multiple of 2 · ranks, with the padding in a document of its own.
/// Finds padding that takes weight where lengths do not divide by the ranks.
LawResult padding_changes_nothing(const Subject& subject, const Case& c) {
  const Trial base = make_trial(c);
  const std::int64_t tokens = c.shape.q_tokens;
  const std::int64_t multiple = 2 * c.ranks;
  const std::int64_t length = (tokens / multiple + 1) * multiple;
  Problem longer = base.problem;
  longer.shape.q_tokens = longer.shape.kv_tokens = length;
  std::vector<MaskTerm> terms = base.problem.mask.terms();
  terms.emplace_back(DocumentsMask{{tokens, length - tokens}});
  longer.mask = Mask(terms).bind(length, length);
  std::vector<BoundedAnswer> answers;
  std::vector<LawResult> results;
  for (const double filling : {0.0, 3.0}) {
    const AttentionTensors tensors{padded(base.data.q, length, filling),
                                   padded(base.data.k, length, filling),
                                   padded(base.data.v, length, filling)};
    answers.push_back(
        row_slice(run_with_bounds(subject, tensors.input(longer), base.options), 0, tokens));
    results.push_back(within_both_bounds("padded to " + std::to_string(length) + " tokens",
                                         run_with_bounds(subject, base.input(), base.options),
                                         answers.back()));
  }
  const std::string what = "padding of another value";
  results.push_back(subject.can.has(Ability::deterministic)
                        ? same_rows(what, answers[1].output, answers[0].output)
                        : within_both_bounds(what, answers[1], answers[0]));
  return all_held(results);
}

}  // namespace

std::vector<Law> document_laws() {
  return {
      {.id = "P34",
       .name = "changing_one_document_changes_no_other",
       .statement = "Documents: a document keeps its bits when all the others are overwritten.",
       .exact = true,
       .or_within_bounds = true,
       .shape_case = documents_case_or_decoding,
       .check = other_documents_change_nothing,
       .shape_simpler_case = documents_case},
      {.id = "P34-packed",
       .name = "packed_documents_equal_separate_runs",
       .statement = "Documents: each gives the rows it gives when it runs alone.",
       .shape_case = documents_case,
       .check = packed_equals_separate},
      {.id = "P35",
       .name = "padding_that_no_token_sees_changes_nothing",
       .statement = "Padding to a multiple of 2P changes no row, and its content not a bit.",
       .shape_case = padding_case,
       .check = padding_changes_nothing},
  };
}

}  // namespace ringlab::verify
