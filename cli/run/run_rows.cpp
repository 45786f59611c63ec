#include "cli/run/run_rows.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>

#include "cli/line/progress.h"
#include "optimized/ring/closed_forms.h"
#include "optimized/ring/device_engine.h"
#include "optimized/ring/engine.h"
#include "optimized/ring/whole_tensors.h"
#include "reference/core/shards.h"
#include "reference/core/small_float.h"

namespace ringlab::cli {
namespace {

using verify::RandomTensor;

template <class Element>
ring::RankRows<Element> make_rows(const RowRun& run, const ring::RankTokens& tokens) {
  const auto rows = [&](RandomTensor tensor, const Positions& positions) {
    return run.input.rows<Element>(tensor, positions);
  };
  std::optional<Tensor<Element>> dout;
  if (run.last_pass == Pass::backward) dout = rows(RandomTensor::dout, tokens.queries);
  return ring::owned_rows<Element>(rows(RandomTensor::q, tokens.queries),
                                   rows(RandomTensor::k, tokens.keys),
                                   rows(RandomTensor::v, tokens.keys), std::move(dout));
}

/// A row that is kept: its index in the rank's rows, and in the kept ones.
struct Kept {
  std::int64_t from = 0, to = 0;
};
std::vector<Kept> kept_of(const Positions& queries, const std::vector<std::int64_t>& rows) {
  std::vector<Kept> kept;
  const std::vector<std::int64_t> tokens = queries.to_list();
  for (std::size_t local = 0; local < tokens.size(); ++local) {
    const auto found = std::ranges::lower_bound(rows, tokens[local]);
    if (found == rows.end() || *found != tokens[local]) continue;
    kept.push_back({static_cast<std::int64_t>(local), found - rows.begin()});
  }
  return kept;
}

template <class T>
void copy_rows(const Tensor<T>& from, const std::vector<Kept>& rows, Tensor<double>& to) {
  const Extents& e = from.extents();
  for_each_index({e.batch, e.heads, std::ssize(rows), e.channels},
                 [&](auto b, auto h, auto i, auto c) {
                   const Kept& row = rows[static_cast<std::size_t>(i)];
                   to(b, h, row.to, c) = static_cast<double>(from(b, h, row.from, c));
                 });
}

Extents with_rows(Extents extents, std::int64_t rows) {
  extents.tokens = rows;
  return extents;
}

std::int64_t sum(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

/// Adds a rank's gradients to the sums; makes its inputs once more, for one rank at a time.
template <class Element>
void add_gradients(const RowRun& run, const ring::RankTokens& tokens,
                   const ring::RankResult<Element>& mine) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  const ring::RankRows<Element> given = make_rows<Element>(run, tokens);
  run.identities->add(verify::gradient_rows(tokens.queries, given, mine.out, *mine.gradients));
}

template <class Element>
ring::Ends<Element> ends_of(const RowRun& run, AttentionOutput& kept) {
  return {.source = [&](const ring::RankTokens& tokens) { return make_rows<Element>(run, tokens); },
          .sink =
              [&](const ring::RankTokens& tokens, ring::RankResult<Element>&& mine) {
                const std::vector<Kept> rows = kept_of(tokens.queries, run.kept_rows);
                copy_rows(mine.out, rows, kept.out);
                copy_rows(mine.lse, rows, kept.lse);
                if (run.identities != nullptr && mine.gradients) add_gradients(run, tokens, mine);
              }};
}

RunResult room_for(const RowRun& run) {
  const Shape& shape = run.input.problem.shape;
  const std::int64_t rows = std::ssize(run.kept_rows);
  return {.output = {Tensor<double>(with_rows(shape.out(), rows)),
                     Tensor<double>(with_rows(shape.lse(), rows))},
          .ranks = {},
          .leftover_messages = 0,
          .seconds = 0};
}

RunResult run_rows(const RowRun& run, const ring::Engine& engine, const ring::Place& place) {
  RunResult result = room_for(run);
  with_element_type(run.input.problem.dtype, [&]<class Element>(Element) {
    const ring::Ends<Element> ends = ends_of<Element>(run, result.output);
    ring::take_summary(engine.run(run.input.problem, run.options, ends, place), result);
  });
  return result;
}

}  // namespace

RunResult run_engine_shown(const AttentionInput& input, const RunOptions& options) {
  const Pass last_pass = input.dout ? Pass::backward : Pass::forward;
  std::atomic<std::int64_t> done = 0;
  const Progress progress("running optimized",
                          {&done, sum(ring::engine_work(input.problem, options, last_pass))});
  ring::EngineParts parts;
  parts.work_done = [&done](std::int64_t amount) { done += amount; };
  return ring::Engine(parts).run(input, options);
}

RunResult run_random_rows(const RowRun& run) {
  if (run.options.device == DeviceKind::cuda) {
    const Progress progress("running optimized on devices");
    return run_rows(run, {}, ring::OnDevices());
  }
  std::atomic<std::int64_t> done = 0;
  const Progress progress(
      "running optimized",
      {&done, sum(ring::engine_work(run.input.problem, run.options, run.last_pass))});
  ring::EngineParts parts;
  parts.work_done = [&done](std::int64_t amount) { done += amount; };
  return run_rows(run, ring::Engine(parts), ring::InProcess());
}

AttentionOutput rows_of_output(const AttentionOutput& whole,
                               const std::vector<std::int64_t>& rows) {
  const Positions positions = Positions::from_list(rows);
  return {shard_of<double>(whole.out.view(), positions),
          shard_of<double>(whole.lse.view(), positions)};
}

}  // namespace ringlab::cli
