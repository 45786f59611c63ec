// Mistakes of layouts: rows at the wrong tokens, positions that are not those of the rows, numbers
// that change on the way between ranks.
#include <algorithm>
#include <utility>

#include "property_tests/diagnosis/hypotheses.h"

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

/// The rows of a rank and the tokens that they are.
struct HeldRows {
  int rank;
  std::vector<std::int64_t> tokens;
};
/// The position that row `row` of a rank is taken for.
using Position = std::int64_t (*)(const Layout& layout, const HeldRows& held, std::size_t row);

std::int64_t zigzag_as_one_run(const Layout& layout, const HeldRows& held, std::size_t row) {
  if (layout.kind() != LayoutKind::zigzag) return held.tokens[row];
  return held.tokens[0] + static_cast<std::int64_t>(row);
}

/// One of 2P nearly equal parts of the sequence; the first ones are a token longer.
struct Part {
  std::int64_t first, count;
};
Part zigzag_part(const Layout& layout, int index) {
  const std::int64_t parts = std::int64_t{2} * layout.ranks();
  const std::int64_t length = layout.tokens() / parts, longer = layout.tokens() % parts;
  return {index * length + std::min<std::int64_t>(index, longer), length + (index < longer)};
}

std::int64_t zigzag_not_mirrored(const Layout& layout, const HeldRows& held, std::size_t row) {
  const auto late = static_cast<std::int64_t>(row) - zigzag_part(layout, held.rank).count;
  if (layout.kind() != LayoutKind::zigzag || late < 0) return held.tokens[row];
  return zigzag_part(layout, layout.ranks() + held.rank).first + late;
}

std::int64_t zigzag_late_part_first(const Layout& layout, const HeldRows& held, std::size_t row) {
  if (layout.kind() != LayoutKind::zigzag) return held.tokens[row];
  const Part late = zigzag_part(layout, 2 * layout.ranks() - 1 - held.rank);
  const auto at = static_cast<std::int64_t>(row);
  return at < late.count ? late.first + at : zigzag_part(layout, held.rank).first + at - late.count;
}

std::int64_t stripes_of_rank_0(const Layout& layout, const HeldRows& held, std::size_t row) {
  if (layout.kind() != LayoutKind::striped) return held.tokens[row];
  return static_cast<std::int64_t>(row) * layout.ranks();
}

std::vector<std::int64_t> positions_taken(const Layout& layout, Position position) {
  std::vector<std::int64_t> taken(static_cast<std::size_t>(layout.tokens()));
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    const HeldRows held{rank, layout.positions(rank).to_list()};
    for (std::size_t row = 0; row < held.tokens.size(); ++row) {
      taken[static_cast<std::size_t>(held.tokens[row])] = position(layout, held, row);
    }
  }
  return taken;
}

Hypothesis by_positions(Suspect suspect, Position position) {
  return by_model(std::move(suspect), [=](Model& model) {
    const RunOptions& options = model.trial.options;
    const Shape& shape = model.shape();
    const auto queries =
        positions_taken(make_layout(options, shape.q_tokens, options.q_layout), position);
    const auto keys =
        positions_taken(make_layout(options, shape.kv_tokens, options.kv_layout), position);
    const Mask mask = model.trial.problem.mask;
    see_pairs(model, [&](auto i, auto j) {
      const std::int64_t key = keys[static_cast<std::size_t>(j)];
      return key < shape.kv_tokens && mask.allows(queries[static_cast<std::size_t>(i)], key);
    });
  });
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
  count_pairs(model, [&](auto i, auto j) { return wild[model.pair(i, j)] ? 1e26 : 1.0; });
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
  all.push_back(by_positions(
      {"layout.zigzag_taken_for_one_run", "rows of a zigzag rank are taken for neighbours"},
      zigzag_as_one_run));
  all.push_back(by_positions({"layout.zigzag_not_mirrored",
                              "the late part of zigzag rank r is taken for part P + r, which is "
                              "not the one that makes up for its early part"},
                             zigzag_not_mirrored));
  all.push_back(by_positions({"layout.zigzag_parts_exchanged",
                              "the early and the late part of a zigzag rank are taken for each "
                              "other"},
                             zigzag_late_part_first));
  all.push_back(by_positions(
      {"layout.stripes_without_offset", "striped positions lack the offset of their rank"},
      stripes_of_rank_0));
  all.push_back(by_model({"layout.keys_in_rank_order",
                          "keys and values lie rank after rank and are taken for tokens in order"},
                         read_in_rank_order));
  all.push_back(by_model({"ring.gathered_in_another_order",
                          "chunks are stored own one first and labelled rank after rank"},
                         label_in_rank_order));
  return all;
}

}  // namespace ringlab::verify
