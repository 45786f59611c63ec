#include "cli/run/run_output.h"

#include <fmt/format.h>

#include <filesystem>
#include <random>

#include "cli/line/output.h"
#include "cli/report/trace/trace_json.h"
#include "cli/run/run_plan.h"
#include "optimized/transport/tell_all.h"
#include "reference/core/error.h"
#include "reference/io/tensor_file.h"
#include "reference/io/tensor_rows.h"

namespace ringlab::cli {
namespace {

constexpr int kOutputTag = (1 << 20) + 1;

// One tensor of the result: this rank's rows, and where in the whole they belong.
struct Part {
  const Tensor<double>* rows = nullptr;
  const Positions* positions = nullptr;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape = {};  // of the whole, in the file's dimensions
};
using Parts = std::map<std::string, Part>;

struct Places {
  Positions queries, keys;
};

std::vector<std::int64_t> file_shape(const Extents& e, std::size_t dimensions) {
  const std::vector<std::int64_t> all = {e.batch, e.heads, e.tokens, e.channels};
  return {all.begin() + static_cast<std::ptrdiff_t>(4 - dimensions), all.end()};
}

// o with as many dimensions as q had in its file, lse with one less.
Parts parts_of(const LoadedInput& loaded, const Results& results, const Places& places) {
  const Shape& shape = loaded.problem.shape;
  const DType dtype = loaded.problem.dtype;
  const auto part = [&](const Tensor<double>& rows, const Positions& positions,
                        const Extents& whole) {
    return Part{&rows, &positions, dtype, file_shape(whole, loaded.dimensions)};
  };
  Parts parts;
  parts["o"] = part(results.output.out, places.queries, shape.out());
  parts["lse"] = part(results.output.lse, places.queries, shape.lse());
  parts["lse"].shape.pop_back();
  parts["lse"].dtype = dtype == DType::f64 ? DType::f64 : DType::f32;
  if (results.gradients) {
    parts["dq"] = part(results.gradients->dq, places.queries, shape.q());
    parts["dk"] = part(results.gradients->dk, places.keys, shape.k());
    parts["dv"] = part(results.gradients->dv, places.keys, shape.v());
  }
  return parts;
}

io::FileTensor position_tensor(const Positions& positions) {
  io::FileTensor tensor{
      .dtype = DType::f64, .is_byte = false, .shape = {positions.size()}, .values = {}};
  for (const std::int64_t position : positions.to_list()) {
    tensor.values.push_back(static_cast<double>(position));
  }
  return tensor;
}

void write_apart(const std::string& path, const Parts& parts, const Places& places, int rank,
                 io::AtomicFiles& files) {
  io::NamedTensors tensors = {{"q_positions", position_tensor(places.queries)},
                              {"kv_positions", position_tensor(places.keys)}};
  for (const auto& [name, part] : parts) {
    tensors[name] = io::from_tensor(*part.rows, part.dtype);
    if (name == "lse") tensors[name].shape.pop_back();
  }
  io::write_tensors(shard_path(path, rank), tensors, files);
}

std::string random_mark() {
  std::random_device source;
  return fmt::format("{:08x}{:08x}", source(), source());
}

void write_merged(const std::string& path, const Parts& parts, Communicator& network,
                  io::AtomicFiles& files) {
  std::map<std::string, io::PlannedTensor> planned;
  for (const auto& [name, part] : parts) planned[name] = {part.dtype, part.shape};
  const std::string mark = text_of_first(random_mark(), kOutputTag, network);
  io::SharedOutput file(path, planned, mark, files);
  if (network.rank() == 0) file.write_preambles();
  for (const auto& [name, part] : parts) file.write_rows(name, *part.rows, *part.positions);
}

}  // namespace

std::filesystem::path shard_path(std::filesystem::path path, int rank) {
  const std::string mark = fmt::format("rank-{}", rank);
  if (io::container_of(path) != io::Container::safetensors) return path / mark;
  return path.replace_extension(mark + ".safetensors");
}

void check_output(const std::string& path) {
  namespace fs = std::filesystem;
  constexpr const char* kExpected = "a file that ends in .safetensors, or a folder";
  if (path == "-") {
    throw_usage_error({"--output", kExpected, "-", "Only --json can go to standard output."});
  }
  const fs::path given(path);
  const fs::path place = given.has_filename() ? given : given.parent_path();
  check_writable("output", place.string());
  std::error_code ignored;
  const bool is_folder = fs::is_directory(place, ignored);
  const bool is_file = fs::exists(place, ignored) && !is_folder;
  const io::Container container = io::container_of(given);
  if (container == io::Container::safetensors) {
    if (!is_folder) return;
    throw_environment_error({"--output", "a file", path + ", a folder", ""});
  }
  if (is_file) throw_environment_error({"--output", kExpected, path + ", a file", ""});
  const bool is_plain = is_folder || !given.has_extension();
  if (is_plain && container == io::Container::folder) return;
  throw_usage_error({"--output", kExpected, path,
                     "End the name with / to make a folder with a dot in its name."});
}

std::optional<JobOutput> take_job_output(Arguments& arguments, const verify::Place& place) {
  const std::optional<std::string> path = arguments.take_text("output");
  if (!path) return {};
  check_output(*path);
  if (!place.is_job()) return JobOutput{*path};
  return JobOutput{*path, arguments.take_choice<OutputShards>(
                              "output-shards", OutputShards::merged,
                              {{"merged", OutputShards::merged}, {"apart", OutputShards::apart}})};
}

void expect_job_output(const JobOutput& output, io::AtomicFiles& files) {
  const bool is_file = std::filesystem::path(output.path).extension() == ".safetensors";
  if (!is_file) files.expect_folder(output.path);
}

void write_job_output(const RunPlan& plan, const RunResult& result, Communicator& network,
                      io::AtomicFiles& files) {
  const Shape& shape = plan.problem().shape;
  const RunOptions& options = plan.options;
  const int rank = network.rank();
  const Places places{make_layout(options, shape.q_tokens, options.q_layout).positions(rank),
                      make_layout(options, shape.kv_tokens, options.kv_layout).positions(rank)};
  const Parts parts = parts_of(plan.input.loaded, {result.output, result.gradients}, places);
  if (plan.output->shards == OutputShards::apart) {
    return write_apart(plan.output->path, parts, places, rank, files);
  }
  write_merged(plan.output->path, parts, network, files);
}

void write_results(const std::string& path, const LoadedInput& loaded, const Results& results,
                   io::AtomicFiles& files) {
  const Places none;
  io::NamedTensors tensors;
  for (const auto& [name, part] : parts_of(loaded, results, none)) {
    tensors[name] = io::from_tensor(*part.rows, part.dtype);
    tensors[name].shape = part.shape;
  }
  io::write_tensors(path, tensors, files);
}

std::string write_trace(const std::string& path, const std::vector<TraceEvent>& events,
                        io::AtomicFiles& files) {
  files.write(path, report::trace_json(events));
  const bool is_long = std::ssize(events) > report::kMostReadEvents;
  return fmt::format("wrote {} events to {}{}", events.size(), path,
                     is_long ? ": too many for `ringlab trace`, open it in Perfetto" : "");
}

std::string write_trace(const std::string& path, const RunResult& result, io::AtomicFiles& files) {
  std::vector<TraceEvent> events;
  for (const RankStats& rank : result.ranks) {
    events.insert(events.end(), rank.events.begin(), rank.events.end());
  }
  return write_trace(path, events, files);
}

}  // namespace ringlab::cli
