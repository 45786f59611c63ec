#include "cli/run/job_output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "cli/line/output.h"
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

Parts parts_of(const JobShape& job, const RunResult& result, const Places& places) {
  const Shape& shape = job.problem.shape;
  const DType dtype = job.problem.dtype;
  const auto part = [&](const Tensor<double>& rows, const Positions& positions,
                        const Extents& whole) {
    return Part{&rows, &positions, dtype, file_shape(whole, job.dimensions)};
  };
  Parts parts;
  parts["o"] = part(result.output.out, places.queries, shape.out());
  parts["lse"] = part(result.output.lse, places.queries, shape.lse());
  parts["lse"].shape.pop_back();
  parts["lse"].dtype = dtype == DType::f64 ? DType::f64 : DType::f32;
  if (result.gradients) {
    parts["dq"] = part(result.gradients->dq, places.queries, shape.q());
    parts["dk"] = part(result.gradients->dk, places.keys, shape.k());
    parts["dv"] = part(result.gradients->dv, places.keys, shape.v());
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

void write_apart(const std::string& path, const Parts& parts, const Places& places, int rank) {
  io::NamedTensors tensors = {{"q_positions", position_tensor(places.queries)},
                              {"kv_positions", position_tensor(places.keys)}};
  for (const auto& [name, part] : parts) {
    tensors[name] = io::from_tensor(*part.rows, part.dtype);
    if (name == "lse") tensors[name].shape.pop_back();
  }
  std::filesystem::path place(path);
  const std::string mark = fmt::format("rank-{}", rank);
  if (place.extension() == ".safetensors") {
    place.replace_extension(mark + ".safetensors");
  } else {
    place /= mark;
  }
  io::write_tensors(place, tensors);
}

// A value of rank 0's on all ranks.
std::int64_t from_first(std::int64_t value, Communicator& network) {
  if (network.rank() == 0) {
    for (int rank = 1; rank < network.ranks(); ++rank) {
      network.wait(network.post_send(rank, kOutputTag, bytes_of(&value, 1)));
    }
  } else {
    network.wait(network.post_receive(0, kOutputTag, writable_bytes_of(&value, 1)));
  }
  return value;
}

// Returns on rank 0 when all ranks have come here.
void wait_for_all(Communicator& network) {
  std::byte done{};
  if (network.rank() != 0) {
    return network.wait(network.post_send(0, kOutputTag, bytes_of(&done, 1)));
  }
  for (int rank = 1; rank < network.ranks(); ++rank) {
    network.wait(network.post_receive(rank, kOutputTag, writable_bytes_of(&done, 1)));
  }
}

void write_merged(const std::string& path, const Parts& parts, Communicator& network) {
  std::map<std::string, io::PlannedTensor> planned;
  for (const auto& [name, part] : parts) planned[name] = {part.dtype, part.shape};
  const bool first = network.rank() == 0;
  std::optional<io::SharedOutput> file;
  if (first) file.emplace(path, planned, ::getpid()).create();
  const std::int64_t mark = from_first(::getpid(), network);
  if (!first) file.emplace(path, planned, mark);
  for (const auto& [name, part] : parts) file->write_rows(name, *part.rows, *part.positions);
  wait_for_all(network);
  if (first) file->commit();
}

}  // namespace

OptionSpec output_shards_option() {
  return {"output-shards", "HOW", "merged: one result for all ranks; apart: one for each (merged)",
          "with --transport mpi and --output"};
}

std::optional<JobOutput> take_job_output(Arguments& arguments) {
  const std::optional<std::string> path = arguments.take_text("output");
  if (!path) return {};
  check_writable("output", *path);
  return JobOutput{*path, arguments.take_choice<OutputShards>(
                              "output-shards", OutputShards::merged,
                              {{"merged", OutputShards::merged}, {"apart", OutputShards::apart}})};
}

void write_job_output(const JobOutput& output, const JobShape& job, const RunResult& result,
                      Communicator& network) {
  const Shape& shape = job.problem.shape;
  const int rank = network.rank();
  const Places places{
      make_layout(job.options, shape.q_tokens, job.options.q_layout).positions(rank),
      make_layout(job.options, shape.kv_tokens, job.options.kv_layout).positions(rank)};
  const Parts parts = parts_of(job, result, places);
  if (output.shards == OutputShards::apart) return write_apart(output.path, parts, places, rank);
  write_merged(output.path, parts, network);
}

}  // namespace ringlab::cli
