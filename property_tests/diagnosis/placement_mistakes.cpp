// Mistakes of layouts: rows at the wrong tokens, positions that are not those of the rows, numbers
// that change on the way between ranks.
#include <algorithm>
#include <utility>

#include "property_tests/diagnosis/hypotheses.h"
#include "property_tests/diagnosis/order.h"

namespace ringlab::verify {
namespace {

/// Moves rows: row i of the answer is row from(i) of the right one, where it is not negative.
using RowsFrom = std::vector<std::int64_t> (*)(const Layout& layout);

enum class MovedOutputs { out, out_and_lse };

Tensor<double> rows_from(const Tensor<double>& x, const std::vector<std::int64_t>& from) {
  return mapped(x, [&](double, auto b, auto h, auto i, auto c) {
    return x(b, h, from[static_cast<std::size_t>(i)], c);
  });
}

void add_moves(std::vector<Hypothesis>& all, const Suspect& suspect, RowsFrom rows) {
  for (const MovedOutputs moved : {MovedOutputs::out, MovedOutputs::out_and_lse}) {
    all.push_back(by_result(suspect, [=](Prediction& prediction, const Model& model) {
      const RunOptions& options = model.trial.options;
      const std::int64_t tokens = model.shape().q_tokens;
      const auto from = rows(make_layout(options, tokens, options.q_layout));
      prediction.output.out = rows_from(prediction.output.out, from);
      prediction.allowed.out = rows_from(prediction.allowed.out, from);
      if (moved == MovedOutputs::out) return;
      prediction.output.lse = rows_from(prediction.output.lse, from);
      prediction.allowed.lse = rows_from(prediction.allowed.lse, from);
    }));
  }
}

std::vector<std::int64_t> first_two_swapped(const Layout& layout) {
  std::vector<std::int64_t> from = in_order(layout.tokens());
  if (layout.ranks() < 2) return from;
  const auto first = layout.positions(0).to_list(), second = layout.positions(1).to_list();
  for (std::size_t at = 0; at < std::min(first.size(), second.size()); ++at) {
    from[static_cast<std::size_t>(first[at])] = second[at];
    from[static_cast<std::size_t>(second[at])] = first[at];
  }
  return from;
}

/// Shards one after the other, whatever tokens they hold: a gather that forgets the layout.
std::vector<std::int64_t> in_rank_order(const Layout& layout) {
  std::vector<std::int64_t> from;
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    const auto held = layout.positions(rank).to_list();
    from.insert(from.end(), held.begin(), held.end());
  }
  return from;
}

std::vector<std::int64_t> in_rank_order_of_zigzag(const Layout& layout) {
  return layout.kind() == LayoutKind::zigzag ? in_rank_order(layout) : in_order(layout.tokens());
}

/// The order in which a striped token is looked for on the next rank.
std::vector<std::int64_t> stripe_of_the_next_rank(const Layout& layout) {
  std::vector<std::int64_t> from = in_order(layout.tokens());
  if (layout.kind() != LayoutKind::striped) return from;
  const std::int64_t ranks = layout.ranks();
  for (std::int64_t& token : from) {
    token = std::min(token / ranks * ranks + (token + 1) % ranks, layout.tokens() - 1);
  }
  return from;
}

/// Stores chunks own one first and labels them rank after rank, as an all-gather that begins with
/// the own chunk does.
void label_in_rank_order(Model& model) {
  const RunOptions& options = model.trial.options;
  const Layout layout = make_layout(options, model.shape().kv_tokens, options.kv_layout);
  std::vector<std::uint8_t> wild(model.key_read.size());
  for (std::int64_t i = 0; i < model.shape().q_tokens; ++i) {
    for (int owner = 0; owner < options.ranks; ++owner) {
      const auto rows = layout.positions(owner).to_list();
      const auto read =
          layout.positions((owner + model.rank_of_query(i)) % options.ranks).to_list();
      for (std::size_t at = 0; at < rows.size(); ++at) {
        const std::size_t pair = model.pair(i, rows[at]);
        wild[pair] = at >= read.size();
        if (!wild[pair]) model.key_read[pair] = model.value_read[pair] = read[at];
      }
    }
  }
  score_again(model);
  count_pairs(model, [&](auto i, auto j) { return wild[model.pair(i, j)] ? kWild : 1.0; });
}

/// Takes row j of the chunks, put down rank after rank, for token j.
void read_in_rank_order(Model& model) {
  const RunOptions& options = model.trial.options;
  const Layout layout = make_layout(options, model.shape().kv_tokens, options.kv_layout);
  std::vector<std::int64_t> rows;
  for (int owner = 0; owner < options.ranks; ++owner) {
    const auto held = layout.positions(owner).to_list();
    rows.insert(rows.end(), held.begin(), held.end());
  }
  for (std::int64_t i = 0; i < model.shape().q_tokens; ++i) {
    for (std::size_t j = 0; j < rows.size(); ++j) {
      const std::size_t pair = model.pair(i, static_cast<std::int64_t>(j));
      model.key_read[pair] = model.value_read[pair] = rows[j];
    }
  }
  score_again(model);
}

}  // namespace

std::vector<Hypothesis> placement_mistakes() {
  std::vector<Hypothesis> all;
  add_moves(all,
            {"layout.shards_of_two_ranks_swapped",
             "rows of ranks 0 and 1 come back in each other's places"},
            first_two_swapped);
  add_moves(all,
            {"layout.rows_in_rank_order", "rows come back rank after rank, not at their tokens"},
            in_rank_order);
  add_moves(all, {"layout.zigzag_not_undone", "rows of a zigzag layout come back rank after rank"},
            in_rank_order_of_zigzag);
  add_moves(all,
            {"layout.stripe_of_the_next_rank", "a striped token is looked for on the next rank"},
            stripe_of_the_next_rank);
  all.push_back(by_model({"layout.keys_in_rank_order",
                          "keys and values lie rank after rank and are taken for tokens in order"},
                         read_in_rank_order));
  all.push_back(by_model({"ring.gathered_in_another_order",
                          "chunks are stored own one first and labelled rank after rank"},
                         label_in_rank_order));
  return all;
}

}  // namespace ringlab::verify
