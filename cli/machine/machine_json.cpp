#include "cli/machine/machine_json.h"

#include "cli/machine/device_findings.h"
#include "optimized/cpu/vectors.h"
#include "optimized/ring/device_engine.h"
#include "optimized/ring/vendor/cudnn_engine.h"
#include "optimized/transport/mpi/mpi_session.h"

namespace ringlab::cli {
namespace {

Json processor_json(const Processor& processor) {
  return {{"model", processor.model},
          {"threads", processor.threads},
          {"simd", processor.simd},
          {"vectors", cpu::vectors_in_use()},
          {"available_vectors", cpu::available_vectors()}};
}

Json memory_json(const Memory& memory) {
  return {{"total_bytes", memory.total_bytes},
          {"available_bytes", memory.available_bytes},
          {"limit_bytes", memory.limit_bytes}};
}

Json library_json(const Library& library, bool compiled_in) {
  return {{"found", !library.file.empty()},
          {"version", library.version},
          {"file", library.file},
          {"compiled_in", compiled_in}};
}

/// With what keeps the library from being used.
Json library_with_problem_json(const Library& library, bool compiled_in) {
  Json json = library_json(library, compiled_in);
  json["problem"] = library.problem;
  return json;
}

}  // namespace

Json machine_json(const BuildInfo& build, const Machine& machine) {
  return {{"processor", processor_json(machine.processor)},
          {"memory", memory_json(machine.memory)},
          {"cuda", cuda_json(build, machine.driver)},
          {"nccl", library_with_problem_json(machine.nccl, ring::nccl_available())},
          {"cudnn", library_with_problem_json(machine.cudnn, ring::cudnn_available())},
          {"mpi", library_json(machine.mpi, mpi_available())}};
}

}  // namespace ringlab::cli
