#include "property_tests/stage_libraries/run_bytes.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "property_tests/stage_libraries/rank_stats_json.h"
#include "reference/core/machine/plain_text.h"

namespace ringlab {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Shape, batch, q_heads, kv_heads, q_tokens, kv_tokens, head_dim,
                                   v_dim)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Extents, batch, heads, tokens, channels)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PositionRun, first, count, stride)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankFailure, rank, suspect, step, operation, reason, elapsed_s,
                                   recording)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RunOptions, ranks, layout, direction, schedule, node_ranks,
                                   slots, wire, integrity, trace, transport, delay_seed, rendezvous,
                                   timeout_s, threads, device, as_graph, deterministic,
                                   free_multiprocessors, tile_queries, tile_keys, thread_order_seed)

namespace verify {
namespace {

using Json = nlohmann::json;

template <class Number>
Json binary(const Number* numbers, std::size_t count) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(numbers);
  return Json::binary({bytes, bytes + count * sizeof(Number)});
}

Json json_of(const TensorView<const double>& view) {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(view.extents.size()));
  for_each_index(view.extents,
                 [&](auto b, auto h, auto t, auto c) { values.push_back(view(b, h, t, c)); });
  return binary(values.data(), values.size());
}

[[noreturn]] void throw_garbled(const std::string& what) {
  throw_environment_error({.where = "the answer of a stage's process",
                           .expected = "a result in the extents of its problem",
                           .actual = what});
}

Tensor<double> tensor_of(const Json& json, const Extents& extents) {
  const auto& bytes = json.get_binary();
  Tensor<double> tensor(extents);
  if (bytes.size() != tensor.values().size() * sizeof(double))
    throw_garbled("another number of elements");
  if (!bytes.empty()) std::memcpy(tensor.values().data(), bytes.data(), bytes.size());
  return tensor;
}

// Terms are texts, except matrices of bits, which are bytes.
Json json_of(const Mask& mask) {
  Json terms = Json::array();
  for (const MaskTerm& term : mask.terms()) {
    const auto* bits = std::get_if<BitMask>(&term);
    if (bits == nullptr) {
      terms.push_back(Mask({term}).text());
    } else {
      const auto size = static_cast<std::size_t>(bits->q_tokens * bits->kv_tokens);
      terms.push_back(binary(bits->bits->data(), size));
    }
  }
  return terms;
}

Mask mask_of(const Json& terms, const Shape& s) {
  std::vector<MaskTerm> all;
  for (const Json& term : terms) {
    if (term.is_string()) {
      const Mask parsed = parse_mask(term.get<std::string>());
      all.insert(all.end(), parsed.terms().begin(), parsed.terms().end());
    } else {
      const std::vector<std::uint8_t>& bytes = term.get_binary();
      all.push_back(BitMask{s.q_tokens, s.kv_tokens, SharedBytes(bytes), "bits"});
    }
  }
  return Mask(std::move(all)).bind(s.q_tokens, s.kv_tokens);
}

Json json_of(const std::optional<Layout>& layout) {
  if (!layout) return nullptr;
  Json parts = Json::array();
  for (int rank = 0; rank < layout->ranks(); ++rank)
    parts.push_back(layout->positions(rank).runs());
  return parts;
}

std::optional<Layout> layout_of(const Json& json) {
  if (json.is_null()) return {};
  std::vector<Positions> parts;
  for (const Json& runs : json) {
    parts.emplace_back(runs.get<std::vector<PositionRun>>());
  }
  return Layout::from_parts(std::move(parts));
}

}  // namespace

std::vector<std::uint8_t> bytes_of_run(const AttentionInput& input, const RunOptions& options,
                                       Recorded recorded) {
  const Problem& problem = input.problem;
  Json json = {{"shape", problem.shape},
               {"dtype", problem.dtype},
               {"scale", problem.scale},
               {"mask", json_of(problem.mask)},
               {"options", options},
               {"recorded", recorded == Recorded::yes},
               {"q_layout", json_of(options.q_layout)},
               {"kv_layout", json_of(options.kv_layout)},
               {"q", json_of(input.q)},
               {"k", json_of(input.k)},
               {"v", json_of(input.v)}};
  if (input.dout) json["dout"] = json_of(*input.dout);
  return Json::to_cbor(json);
}

std::unique_ptr<GivenRun> run_of_bytes(const std::vector<std::uint8_t>& bytes) {
  const Json json = Json::from_cbor(bytes);
  auto given = std::make_unique<GivenRun>();
  const Shape s = json.at("shape").get<Shape>();
  given->tensors = {tensor_of(json.at("q"), s.q()), tensor_of(json.at("k"), s.k()),
                    tensor_of(json.at("v"), s.v())};
  given->input = given->tensors.input({.shape = s,
                                       .dtype = json.at("dtype").get<DType>(),
                                       .scale = json.at("scale").get<double>(),
                                       .mask = mask_of(json.at("mask"), s)});
  if (json.contains("dout")) {
    given->dout = tensor_of(json.at("dout"), s.out());
    given->input.dout = std::as_const(given->dout).view();
  }
  given->options = json.at("options").get<RunOptions>();
  given->recorded = json.at("recorded").get<bool>() ? Recorded::yes : Recorded::no;
  given->options.q_layout = layout_of(json.at("q_layout"));
  given->options.kv_layout = layout_of(json.at("kv_layout"));
  return given;
}

namespace {

// Calls are copied as they lie in memory: only the addresses of their pointers count.
Json json_of(const Calls& calls) {
  static_assert(std::is_trivially_copyable_v<NetworkCall>);
  Json ranks = Json::array();
  for (const RankCalls& rank : calls) {
    ranks.push_back(
        {{"calls", binary(rank.calls.data(), rank.calls.size())}, {"ended", rank.ended}});
  }
  return ranks;
}

void take_calls(const Json& ranks, Calls& calls) {
  if (ranks.size() != calls.size()) throw_garbled("calls of another number of ranks");
  for (std::size_t rank = 0; rank < calls.size(); ++rank) {
    const auto& bytes = ranks[rank].at("calls").get_binary();
    calls[rank].calls.resize(bytes.size() / sizeof(NetworkCall));
    if (!calls[rank].calls.empty()) {
      std::memcpy(calls[rank].calls.data(), bytes.data(),
                  calls[rank].calls.size() * sizeof(NetworkCall));
    }
    calls[rank].ended = ranks[rank].at("ended").get<bool>();
  }
}

}  // namespace

std::vector<std::uint8_t> bytes_of_result(const RunResult& result, const Calls& calls) {
  Json json = {{"calls", json_of(calls)},
               {"o", json_of(result.output.out.view())},
               {"lse", json_of(result.output.lse.view())},
               {"ranks", result.ranks},
               {"leftover_messages", result.leftover_messages},
               {"seconds", result.seconds}};
  if (result.gradients) {
    json["dq"] = json_of(result.gradients->dq.view());
    json["dk"] = json_of(result.gradients->dk.view());
    json["dv"] = json_of(result.gradients->dv.view());
  }
  return Json::to_cbor(json);
}

std::vector<std::uint8_t> bytes_of_error(const Error& error, const Calls& calls) {
  const auto* failed = dynamic_cast<const RankError*>(&error);
  if (failed != nullptr) {
    return Json::to_cbor({{"calls", json_of(calls)}, {"rank_failure", failed->failure()}});
  }
  const ErrorParts& parts = error.parts();
  return Json::to_cbor({{"calls", json_of(calls)},
                        {"error",
                         {{"kind", static_cast<int>(error.kind())},
                          {"where", parts.where},
                          {"expected", parts.expected},
                          {"actual", parts.actual},
                          {"hint", parts.hint}}}});
}

namespace {

// Texts may be those of whoever wrote the stage: one line each, which looks like none of a report.
[[noreturn]] void throw_again(const Json& json) {
  if (json.contains("rank_failure")) {
    auto failure = json.at("rank_failure").get<RankFailure>();
    failure.operation = plain_line(failure.operation);
    failure.reason = plain_line(failure.reason);
    throw RankError(failure);
  }
  const Json& error = json.at("error");
  const auto text = [&](const char* name) { return plain_line(error.at(name).get<std::string>()); };
  const int kind = error.at("kind").get<int>();
  if (kind < static_cast<int>(ErrorKind::usage) ||
      kind > static_cast<int>(ErrorKind::environment)) {
    throw_garbled("an error of no kind");
  }
  throw Error(static_cast<ErrorKind>(kind),
              {text("where"), text("expected"), text("actual"), text("hint")});
}

RunResult result_of(const Json& json, const AttentionInput& input, int ranks) {
  if (json.contains("rank_failure") || json.contains("error")) throw_again(json);
  const Shape& s = input.problem.shape;
  RunResult result{.output = {tensor_of(json.at("o"), s.out()), tensor_of(json.at("lse"), s.lse())},
                   .ranks = json.at("ranks").get<std::vector<RankStats>>(),
                   .leftover_messages = json.at("leftover_messages").get<std::int64_t>(),
                   .seconds = json.at("seconds").get<double>()};
  if (std::ssize(result.ranks) != ranks) throw_garbled("another number of ranks");
  if (json.contains("dq")) {
    result.gradients =
        AttentionGradients{tensor_of(json.at("dq"), s.q()), tensor_of(json.at("dk"), s.k()),
                           tensor_of(json.at("dv"), s.v())};
  }
  return result;
}

}  // namespace

RunResult result_of_bytes(const std::vector<std::uint8_t>& bytes, const AttentionInput& input,
                          int ranks, Calls* calls) {
  try {
    constexpr bool kStrict = false, kExceptions = true;  // the file is longer than what it holds
    const Json json = Json::from_cbor(bytes, kStrict, kExceptions);
    if (calls != nullptr) take_calls(json.at("calls"), *calls);
    return result_of(json, input, ranks);
  } catch (const Json::exception& error) {
    throw_garbled(error.what());
  }
}

std::int64_t most_result_bytes(const AttentionInput& input, int ranks) {
  constexpr std::int64_t kForWords = 1 << 16, kForRank = 1 << 12, kForStep = 1 << 12;
  const Shape& s = input.problem.shape;
  std::int64_t numbers = s.out().size() + s.lse().size();
  if (input.dout) numbers += s.q().size() + s.k().size() + s.v().size();
  return numbers * std::int64_t{sizeof(double)} + kForWords + ranks * (kForRank + ranks * kForStep);
}

}  // namespace verify
}  // namespace ringlab
