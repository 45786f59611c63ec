// Layouts that are dealt wrongly: the tokens that rows of a rank are taken for, and the place where
// a token is looked for.
#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "property_tests/diagnosis/hypotheses.h"
#include "property_tests/diagnosis/order.h"
#include "reference/core/unwritten.h"

namespace ringlab::verify {
namespace {

using Tokens = std::vector<std::int64_t>;

struct Run {
  std::int64_t first, count, step = 1;
};

/// A layout, which is dealt out in runs.
struct Deal {
  LayoutKind kind;
  std::int64_t tokens;
  int ranks;

  explicit Deal(const Layout& layout)
      : kind(layout.kind()), tokens(layout.tokens()), ranks(layout.ranks()) {}
  int parts() const { return kind == LayoutKind::zigzag ? 2 * ranks : ranks; }
  std::int64_t length() const { return tokens / parts(); }
  std::int64_t longer() const { return tokens % parts(); }
  /// One of nearly equal parts of the sequence; the first ones are a token longer.
  Run part(int index) const {
    return {index * length() + std::min<std::int64_t>(index, longer()),
            length() + (index < longer() ? 1 : 0)};
  }
  int part_with(std::int64_t token) const {
    const std::int64_t border = longer() * (length() + 1);
    return static_cast<int>(token < border ? token / (length() + 1)
                                           : longer() + (token - border) / length());
  }
  Run stripe(int rank) const { return {rank, (tokens - rank + ranks - 1) / ranks, ranks}; }
};

/// The runs of the rows that a rank has, as they are taken.
using Runs = std::vector<Run> (*)(const Deal&, int rank);
struct DealtEdit {
  const char *id, *words;
  LayoutKind kind;
  Runs runs;
};

/// The edits of the runs of a layout; words say where the rows of a rank are taken to lie.
constexpr DealtEdit kDealtEdits[] = {
    {"zigzag_taken_for_one_run", "rows of a zigzag rank are taken for neighbours",
     LayoutKind::zigzag,
     [](const Deal& d, int r) {
       return std::vector<Run>{{d.part(r).first, d.tokens}};
     }},
    {"zigzag_not_mirrored",
     "the late part of zigzag rank r is taken for part P + r, which is not the one that makes up "
     "for its early part",
     LayoutKind::zigzag,
     [](const Deal& d, int r) {
       return std::vector{d.part(r), d.part(d.ranks + r)};
     }},
    {"zigzag_late_part_before", "the late part of zigzag rank r is taken for part 2P - 2 - r",
     LayoutKind::zigzag,
     [](const Deal& d, int r) {
       return std::vector{d.part(r), d.part(d.parts() - 2 - r)};
     }},
    {"zigzag_late_part_after", "the late part of zigzag rank r is taken for part 2P - r",
     LayoutKind::zigzag,
     [](const Deal& d, int r) {
       return std::vector{d.part(r), d.part(d.parts() - r)};
     }},
    {"zigzag_early_part_after", "the early part of zigzag rank r is taken for part r + 1",
     LayoutKind::zigzag,
     [](const Deal& d, int r) {
       return std::vector{d.part(r + 1), d.part(d.parts() - 1 - r)};
     }},
    {"zigzag_taken_for_contiguous", "zigzag rank r is taken to hold parts 2 r and 2 r + 1",
     LayoutKind::zigzag,
     [](const Deal& d, int r) {
       return std::vector{d.part(2 * r), d.part(2 * r + 1)};
     }},
    {"zigzag_parts_exchanged",
     "the early and the late part of a zigzag rank are taken for each other", LayoutKind::zigzag,
     [](const Deal& d, int r) {
       return std::vector{d.part(d.parts() - 1 - r), d.part(r)};
     }},
    {"zigzag_late_part_from_its_end", "the late part of a zigzag rank is taken from its end",
     LayoutKind::zigzag,
     [](const Deal& d, int r) {
       const Run late = d.part(d.parts() - 1 - r);
       return std::vector{d.part(r), Run{late.first + late.count - 1, late.count, -1}};
     }},
    {"stripes_without_offset", "striped positions lack the offset of their rank",
     LayoutKind::striped,
     [](const Deal& d, int r) {
       return std::vector<Run>{{0, d.stripe(r).count, d.ranks}};
     }},
    {"stripes_from_behind", "striped tokens are dealt out beginning with the last rank",
     LayoutKind::striped,
     [](const Deal& d, int r) {
       return std::vector<Run>{{d.ranks - 1 - r, d.stripe(r).count, d.ranks}};
     }},
    {"stripes_one_further", "striped positions begin one token too late", LayoutKind::striped,
     [](const Deal& d, int r) {
       return std::vector<Run>{{r + 1, d.stripe(r).count, d.ranks}};
     }},
    {"stripes_taken_for_neighbours", "rows of a striped rank are taken for neighbours",
     LayoutKind::striped,
     [](const Deal& d, int r) {
       return std::vector<Run>{{r, d.stripe(r).count}};
     }},
    {"stripes_taken_for_contiguous", "a striped rank is taken to hold one block",
     LayoutKind::striped, [](const Deal& d, int r) { return std::vector{d.part(r)}; }},
    {"longer_parts_forgotten_in_zigzag",
     "part p is taken to begin at p times its least length, whatever parts before it are longer",
     LayoutKind::zigzag,
     [](const Deal& d, int r) {
       const int late = d.parts() - 1 - r;
       return std::vector<Run>{{r * d.length(), d.part(r).count},
                               {late * d.length(), d.part(late).count}};
     }},
    {"longer_parts_forgotten",
     "rank r is taken to begin at r times the least length, whatever ranks before it are longer",
     LayoutKind::contiguous,
     [](const Deal& d, int r) {
       return std::vector<Run>{{r * d.length(), d.part(r).count}};
     }},
    {"ranks_all_as_long_as_the_own", "rank r is taken to begin at r times its own length",
     LayoutKind::contiguous,
     [](const Deal& d, int r) {
       return std::vector<Run>{{r * d.part(r).count, d.part(r).count}};
     }},
    {"ranks_from_behind", "ranks are taken to hold blocks from the end of the sequence on",
     LayoutKind::contiguous,
     [](const Deal& d, int r) { return std::vector{d.part(d.ranks - 1 - r)}; }}};

/// The tokens that the rows of each rank are taken for; -1 where no token is.
std::vector<Tokens> taken_tokens(const Layout& layout, const DealtEdit& edit) {
  std::vector<Tokens> taken = Chunks(layout).tokens;
  const Deal deal(layout);
  if (deal.kind != edit.kind) return taken;
  for (int rank = 0; rank < deal.ranks; ++rank) {
    Tokens& rows = taken[static_cast<std::size_t>(rank)];
    std::size_t row = 0;
    for (const Run& run : edit.runs(deal, rank)) {
      for (std::int64_t n = 0; n < run.count && row < rows.size(); ++n) {
        rows[row++] = run.first + n * run.step;
      }
    }
    for (; row < rows.size(); ++row) rows[row] = -1;
    for (std::int64_t& token : rows) token = token < deal.tokens ? token : -1;
  }
  return taken;
}

/// The rows whose positions are taken wrongly.
enum class Rows { both, queries, keys };

void ask_as_dealt(Model& model, const DealtEdit& edit, Rows rows) {
  const auto positions = [&](const Layout& layout, bool edited) {
    const Chunks chunks(layout);
    const std::vector<Tokens> taken = edited ? taken_tokens(layout, edit) : chunks.tokens;
    Tokens all(chunks.rows.size());
    for (std::size_t rank = 0; rank < taken.size(); ++rank) {
      for (std::size_t row = 0; row < taken[rank].size(); ++row) {
        all[static_cast<std::size_t>(chunks.tokens[rank][row])] = taken[rank][row];
      }
    }
    return all;
  };
  const Tokens queries = positions(query_layout(model), rows != Rows::keys);
  const Tokens keys = positions(key_layout(model), rows != Rows::queries);
  const Mask mask = model.trial.problem.mask;
  see_pairs(model, [&](auto i, auto j) {
    const std::int64_t query = queries[static_cast<std::size_t>(i)];
    const std::int64_t key = keys[static_cast<std::size_t>(j)];
    return query >= 0 && key >= 0 && mask.allows(query, key);
  });
}

/// Writes row n of each rank to token to[rank][n], one rank after the other; nobody writes the rest.
void write_rows(Prediction& prediction, const Chunks& held, const std::vector<Tokens>& to) {
  const auto written = [&](const Tensor<double>& rows, double nobody) {
    Tensor<double> all(rows.extents(), nobody);
    for (std::size_t rank = 0; rank < to.size(); ++rank) {
      for (std::size_t row = 0; row < to[rank].size(); ++row) {
        const std::int64_t from = held.tokens[rank][row], token = to[rank][row];
        if (token < 0) continue;
        const Extents& e = rows.extents();
        for_each_index({e.batch, e.heads, 1, e.channels}, [&](auto b, auto h, auto, auto c) {
          all(b, h, token, c) = rows(b, h, from, c);
        });
      }
    }
    return all;
  };
  prediction = {
      {written(prediction.output.out, kUnwritten), written(prediction.output.lse, kUnwritten)},
      {written(prediction.allowed.out, 0), written(prediction.allowed.lse, 0)}};
}

/// The place where a token is looked for.
struct Place {
  int rank;
  std::int64_t row;
};
using PlaceOf = Place (*)(const Deal&, std::int64_t token);
struct PlaceEdit {
  const char* id;
  const char* words;  ///< nullptr: those of the layout that is dealt like this
  LayoutKind kind;
  PlaceOf place;
};

/// The place of a token in a zigzag layout, where its late part begins at row `late` of the rank.
Place zigzag_place(const Deal& d, std::int64_t token, int (*late_rank)(const Deal&, int part),
                   std::int64_t (*late)(const Deal&, int part)) {
  const int part = d.part_with(token);
  const std::int64_t row = token - d.part(part).first;
  return part < d.ranks ? Place{part, row} : Place{late_rank(d, part), late(d, part) + row};
}
int mirrored(const Deal& d, int part) { return d.parts() - 1 - part; }
std::int64_t below_the_early(const Deal& d, int part) { return d.part(mirrored(d, part)).count; }

const std::vector<PlaceEdit>& place_edits() {
  using enum LayoutKind;
  static const std::vector<PlaceEdit> all = {
      {"striped_place_exchanged",
       "striped token t is looked for on rank t / P in row t % P, not the other way round", striped,
       [](const Deal& d, std::int64_t t) {
         return Place{static_cast<int>(t / d.ranks), t % d.ranks};
       }},
      {"stripes_from_behind", nullptr, striped,
       [](const Deal& d, std::int64_t t) {
         return Place{static_cast<int>(d.ranks - 1 - t % d.ranks), t / d.ranks};
       }},
      {"stripes_taken_for_contiguous", nullptr, striped,
       [](const Deal& d, std::int64_t t) {
         const int part = d.part_with(t);
         return Place{part, t - d.part(part).first};
       }},
      {"zigzag_place_on_top",
       "the late part of a zigzag rank is looked for where its early one lies", zigzag,
       [](const Deal& d, std::int64_t t) {
         return zigzag_place(d, t, mirrored, [](const Deal&, int) { return std::int64_t{0}; });
       }},
      {"zigzag_not_mirrored", nullptr, zigzag,
       [](const Deal& d, std::int64_t t) {
         return zigzag_place(
             d, t, [](const Deal& deal, int part) { return part - deal.ranks; },
             [](const Deal& deal, int part) { return deal.part(part - deal.ranks).count; });
       }},
      {"zigzag_place_below_itself",
       "the late part of a zigzag rank is looked for as far down as itself is long, not as the "
       "early one is",
       zigzag,
       [](const Deal& d, std::int64_t t) {
         return zigzag_place(d, t, mirrored,
                             [](const Deal& deal, int part) { return deal.part(part).count; });
       }},
      {"zigzag_taken_for_contiguous", nullptr, zigzag,
       [](const Deal& d, std::int64_t t) {
         const int part = d.part_with(t);
         return Place{part / 2,
                      (part % 2 == 0 ? 0 : d.part(part - 1).count) + t - d.part(part).first};
       }},
      {"longer_parts_forgotten_in_zigzag", nullptr, zigzag,
       [](const Deal& d, std::int64_t t) {
         const int part = static_cast<int>(
             std::min<std::int64_t>(d.length() == 0 ? 0 : t / d.length(), d.parts() - 1));
         const std::int64_t row = t - part * d.length();
         return part < d.ranks ? Place{part, row}
                               : Place{mirrored(d, part), below_the_early(d, part) + row};
       }},
      {"longer_parts_forgotten", nullptr, contiguous, [](const Deal& d, std::int64_t t) {
         const int part = static_cast<int>(
             std::min<std::int64_t>(d.length() == 0 ? 0 : t / d.length(), d.parts() - 1));
         return Place{part, t - part * d.length()};
       }}};
  return all;
}

/// Writes the row at a place to each token that is looked for there, the last one; rows at which no
/// token is looked for go to token 0, with which such a list begins.
Prediction by_places(const Scene& scene, const PlaceEdit& edit) {
  const Model& model = scene.right;
  Prediction prediction = finish(model);
  const Deal deal(query_layout(model));
  if (deal.kind != edit.kind) return prediction;
  const Chunks held(query_layout(model));
  std::vector<Tokens> to;
  for (const Tokens& rows : held.tokens) to.emplace_back(rows.size(), 0);
  for (std::int64_t token = 0; token < deal.tokens; ++token) {
    const Place place = edit.place(deal, token);
    if (place.rank < 0 || place.rank >= deal.ranks) continue;
    Tokens& rows = to[static_cast<std::size_t>(place.rank)];
    if (place.row < std::ssize(rows)) rows[static_cast<std::size_t>(place.row)] = token;
  }
  write_rows(prediction, held, to);
  return prediction;
}

}  // namespace

std::vector<Hypothesis> layout_edits() {
  std::vector<Hypothesis> all;
  for (const DealtEdit& edit : kDealtEdits) {
    const Suspect suspect{std::string("layout.") + edit.id, edit.words};
    for (const Rows rows : {Rows::both, Rows::queries, Rows::keys}) {
      all.push_back(by_model(suspect, [=](Model& model) { ask_as_dealt(model, edit, rows); }));
    }
    all.push_back(by_result(suspect, [=](Prediction& prediction, const Model& model) {
      const Layout layout = query_layout(model);
      write_rows(prediction, Chunks(layout), taken_tokens(layout, edit));
    }));
  }
  for (const PlaceEdit& edit : place_edits()) {
    const auto dealt =
        std::ranges::find(kDealtEdits, std::string_view(edit.id),
                          [](const DealtEdit& other) { return std::string_view(other.id); });
    const char* words = edit.words ? edit.words : dealt->words;
    all.push_back({{std::string("layout.") + edit.id, words},
                   [=](const Scene& scene) { return by_places(scene, edit); }});
  }
  return all;
}

}  // namespace ringlab::verify
