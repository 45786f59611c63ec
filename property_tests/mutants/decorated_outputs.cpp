// Mistakes in a kernel's results on their way to the caller.
#include <cmath>
#include <numbers>
#include <utility>

#include "property_tests/mutants/decorated.h"
#include "property_tests/mutants/planted.h"

namespace ringlab::mutants {
namespace {

using Tamper = void (*)(RunResult&, const RunOptions&);

/// The correct stage, whose results are changed on their way to the caller.
Mutant with_tampered_output(MutantInfo info, Tamper tamper) {
  verify::Subject subject = subject_like(info, {DType::f32});
  subject.run = [run = subject.run, tamper](const AttentionInput& input,
                                            const RunOptions& options) {
    RunResult result = run(input, options);
    tamper(result, options);
    return result;
  };
  return {std::move(info), std::move(subject)};
}

/// Stores lse in f16, which holds it to three digits, and none above 65504.
void store_lse_in_half(RunResult& result, const RunOptions&) {
  for (double& lse : result.output.lse.values()) lse = round_to(DType::f16, lse);
}

/// Puts a large negative number in place of -inf: merges with it give NaN or a lost row later.
void finite_lse_for_empty_rows(RunResult& result, const RunOptions&) {
  for (double& lse : result.output.lse.values()) {
    if (std::isinf(lse)) lse = -5e4;
  }
}

/// Gives lse in powers of two, as kernels have it inside.
void lse_in_base_two(RunResult& result, const RunOptions&) {
  for (double& lse : result.output.lse.values()) lse *= std::numbers::log2e;
}

/// Exchanges the rows of the first two ranks.
void swap_first_two_shards(RunResult& result, const RunOptions& options) {
  Tensor<double>& out = result.output.out;
  if (options.ranks < 2 || out.extents().tokens == 0) return;
  const Layout layout = make_layout(options, out.extents().tokens, options.q_layout);
  const Positions& first = layout.positions(0);
  const Positions& second = layout.positions(1);
  const Tensor<double> before = out;
  for_each_index(out.extents(), [&](auto b, auto h, auto i, auto c) {
    if (i >= first.size() || i >= second.size()) return;
    out(b, h, first[i], c) = before(b, h, second[i], c);
    out(b, h, second[i], c) = before(b, h, first[i], c);
  });
}

/// Lets a row of the last wave of a large grid keep the result of the row before it.
void keep_one_stale_row(RunResult& result, const RunOptions&) {
  constexpr std::int64_t kRow = 2047;
  Tensor<double>& out = result.output.out;
  Extents row = out.extents();
  if (row.tokens <= kRow) return;
  row.tokens = 1;
  for_each_index(
      row, [&](auto b, auto h, auto, auto c) { out(b, h, kRow, c) = out(b, h, kRow - 1, c); });
}

}  // namespace

std::vector<Mutant> output_mutants() {
  return {
      with_tampered_output({"lse_stored_in_half", "ring", "lse loses 13 bits",
                            "How far apart are two neighbouring half floats near 1000?",
                            "lucidrains/ring-attention-pytorch d49499f"},
                           store_lse_in_half),
      with_tampered_output(
          {"empty_row_lse_finite", "causal_ring", "a row that sees nothing returns lse = -50000",
           "What does a merge do with a finite lse of an empty row?", "flashinfer #4051"},
          finite_lse_for_empty_rows),
      with_tampered_output({"lse_in_base_two", "flash_blocks", "lse is returned in base 2",
                            "Which logarithm does the caller expect?", "SGLang #40903"},
                           lse_in_base_two),
      with_tampered_output({"shards_returned_swapped", "causal_ring",
                            "the rows of ranks 0 and 1 come back in each other's places",
                            "Is un-permuting the inverse of permuting?",
                            "lucidrains/ring-attention-pytorch 78530bc"},
                           swap_first_two_shards),
      with_tampered_output(
          {"one_stale_row_in_thousands", "flash_blocks", "row 2047 comes back as the row before it",
           "Which rows has a check of a sample of them never seen?", "classic"},
          keep_one_stale_row),
  };
}

}  // namespace ringlab::mutants
