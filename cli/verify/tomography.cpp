#include "property_tests/diagnosis/tomography.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/inputs/problem_options.h"
#include "cli/inputs/run_options.h"
#include "cli/inputs/subjects.h"
#include "cli/verify/verify.h"
#include "reference/core/error.h"

namespace ringlab::cli {
namespace {

constexpr std::int64_t kMostTokens = 512;  // a matrix that somebody can look at
constexpr std::int64_t kPictureSize = 48;
constexpr std::int64_t kMostDrawn = 128, kMostHeads = 8;  // on a page

void check_small(const Shape& shape) {
  const std::int64_t tokens = std::max(shape.q_tokens, shape.kv_tokens);
  if (tokens <= kMostTokens) return;
  throw_usage_error({"--tomography", fmt::format("at most {} tokens", kMostTokens),
                     fmt::format("{}", tokens),
                     "It runs the subject once for every v_dim keys; give --tokens"});
}

Json tomography_json(const std::string& subject, const verify::Tomography& tomography) {
  Json pictures = Json::array();
  const Extents& extents = tomography.got.extents();
  for (std::int64_t b = 0; b < extents.batch; ++b) {
    for (std::int64_t h = 0; h < extents.heads; ++h) {
      pictures.push_back(verify::softmax_picture(tomography, b, h, kPictureSize));
    }
  }
  return {{"subject", subject}, {"findings", tomography.findings}, {"pictures", pictures}};
}

/// The weights of the first heads, with the mark of each: rows of queries, keys across.
Json weights_json(const verify::Tomography& tomography) {
  const Extents& extents = tomography.got.extents();
  Json heads = Json::array();
  for (std::int64_t head = 0; head < std::min(extents.heads, kMostHeads); ++head) {
    Json& json = heads.emplace_back(
        Json{{"marks", Json::array()}, {"got", Json::array()}, {"exact", Json::array()}});
    for (std::int64_t query = 0; query < std::min(extents.tokens, kMostDrawn); ++query) {
      std::string marks;
      Json got = Json::array(), exact = Json::array();
      for (std::int64_t key = 0; key < std::min(extents.channels, kMostDrawn); ++key) {
        const double weight = tomography.got(0, head, query, key);
        const double right = tomography.exact(0, head, query, key);
        marks += verify::softmax_mark(weight, right);
        got.push_back(json_number(weight));
        exact.push_back(json_number(right));
      }
      json["marks"].push_back(marks);
      json["got"].push_back(got);
      json["exact"].push_back(exact);
    }
  }
  return heads;
}

void print_tomography(const std::string& subject, const verify::Tomography& tomography,
                      Output& output) {
  output.print("\n{}: queries down, keys across, head 0\n{}", subject,
               verify::softmax_picture(tomography, 0, 0, kPictureSize));
  for (const std::string& finding : tomography.findings) output.print("  {}\n", finding);
  if (tomography.findings.empty()) output.print("  every weight is right\n");
}

}  // namespace

int run_tomography(Arguments& arguments, Output& output) {
  arguments.take_switch("tomography");
  const std::vector<verify::Subject> subjects = subjects_named(arguments);
  const RunOptions options = take_run_options(
      arguments, {.ranks = 4, .layout = LayoutKind::contiguous, .tile_queries = 8, .tile_keys = 8});
  const std::optional<std::string> page = arguments.take_text("html");
  const LoadedInput loaded =
      load_input(arguments, {.tokens = 32, .mask = "causal", .built_in = true});
  arguments.reject_unused();
  check_small(loaded.problem.shape);
  for (const verify::Subject& subject : subjects) require_device_of(subject, options.device);
  output.print("= right   - too little   + too much   0 lost   ! must not be seen   ? no number\n");
  Json results = Json::array();
  Json heads = Json::array();
  bool right = true;
  for (const verify::Subject& given : subjects) {
    const verify::Subject subject = as_asked(given, options);
    RunOptions own = options;
    if (!subject.can.has(verify::Ability::many_ranks)) own.ranks = 1;
    const verify::Tomography tomography =
        verify::read_softmax(subject, {loaded.problem, own, loaded.tensors});
    right &= tomography.findings.empty();
    print_tomography(subject.name, tomography, output);
    results.push_back(tomography_json(subject.name, tomography));
    if (page) heads.push_back(weights_json(tomography));
  }
  if (page) {
    output.show(*page, right ? "Every weight is right." : "Some weights are wrong.",
                {{"heads", heads}});
  }
  return output.finish("verify", {{"tomography", results}, {"passed", right}}, right ? 0 : 1);
}

}  // namespace ringlab::cli
