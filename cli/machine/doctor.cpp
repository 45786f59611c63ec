// `ringlab doctor`: what this machine and this build have, and what that enables.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/line/arguments.h"
#include "cli/line/build_info.h"
#include "cli/line/command.h"
#include "cli/line/output.h"
#include "cli/line/text_table.h"
#include "cli/machine/findings.h"
#include "cli/machine/machine.h"
#include "cli/machine/measure.h"
#include "cli/model/model_options.h"
#include "cli/report/human.h"
#include "optimized/cpu/vectors.h"
#include "optimized/cuda/cudnn/cudnn_library.h"
#include "optimized/ring/device_engine.h"
#include "optimized/ring/vendor/cudnn_engine.h"
#include "optimized/transport/mpi/mpi_session.h"
#include "optimized/transport/nccl/nccl_library.h"

namespace ringlab::cli {
namespace {

Finding processor_finding(const Processor& processor) {
  return {"processor",
          fmt::format("{}, {} threads", processor.model.empty() ? "unknown" : processor.model,
                      processor.threads),
          processor.threads > 1 ? "ranks and subjects run side by side"
                                : "ranks take turns on one thread"};
}

std::string simd_effect() {
  return fmt::format("the kernels of optimized use {}; RINGLAB_VECTORS chooses among {}",
                     cpu::vectors_in_use(), fmt::join(cpu::available_vectors(), ", "));
}

Finding memory_finding(const Memory& memory) {
  std::string found = fmt::format("{}, {} available", report::human_bytes(memory.total_bytes),
                                  report::human_bytes(memory.available_bytes));
  if (memory.limit_bytes > 0) {
    found += fmt::format(", limited to {}", report::human_bytes(memory.limit_bytes));
  }
  return {"memory", found, "tensors are held as doubles: 8 bytes per element of q, k, v, o"};
}

std::string found_text(const Library& library) {
  return library.file.empty() ? "not found" : fmt::format("{} ({})", library.version, library.file);
}

// The row on NCCL: its version, and what --transport nccl still needs.
Finding nccl_finding(const Library& nccl) {
  const std::string found = found_text(nccl);
  if (!ring::nccl_available()) {
    return {nccl.name, found,
            "no --transport nccl: install libnccl-dev, configure with -DRINGLAB_CUDA=ON and "
            "-DRINGLAB_NCCL=ON"};
  }
  if (!nccl.file.empty()) {
    return {nccl.name, found, "ranks as processes with a device each: --transport nccl"};
  }
  return {nccl.name, found,
          fmt::format("no --transport nccl ({}): install libnccl2, or let {} name a libnccl.so.2",
                      nccl.problem, nccl::kLibraryVariable)};
}

// The row on cuDNN: its version, and what the subject cudnn still needs.
Finding cudnn_finding(const Library& cudnn) {
  const std::string found = found_text(cudnn);
  if (!ring::cudnn_available()) {
    return {
        cudnn.name, found,
        "no subject cudnn: install libcudnn9-dev-cuda, run scripts/cudnn_frontend, configure with "
        "-DRINGLAB_CUDA=ON and -DRINGLAB_CUDNN=ON"};
  }
  if (!cudnn.file.empty()) {
    return {cudnn.name, found, "NVIDIA's attention in rings: the subject cudnn, --device cuda"};
  }
  return {cudnn.name, found,
          fmt::format("no subject cudnn ({}): install libcudnn9-cuda, or let {} name a "
                      "libcudnn.so.9",
                      cudnn.problem, cudnn::kLibraryVariable)};
}

// The row on MPI: its version, and what --transport mpi still needs.
Finding mpi_finding(const Library& mpi) {
  const std::string found = found_text(mpi);
  if (mpi_available()) return {mpi.name, found, "ranks as processes: mpirun … --transport mpi"};
  return {mpi.name, found,
          "no --transport mpi: install libopenmpi-dev, configure with -DRINGLAB_MPI=ON"};
}

/// Measures this machine and writes its file, named as the file is.
void write_measured(const ThisMachine& machine, const std::string& path, Output& output) {
  output.files().write(path,
                       measured_machine(machine, std::filesystem::path(path).stem().string()));
  output.write_at_the_end(
      fmt::format("wrote {}: try ringlab simulate --machine {} --dtype f32 --ranks {}", path, path,
                  std::max(machine.processor.threads, 1)));
}

int doctor(Arguments& arguments) {
  Output output(arguments);
  const std::optional<std::string> measured = take_machine_file(arguments, "measure");
  arguments.reject_unused();
  const BuildInfo build = build_info();
  const ThisMachine machine = find_machine();
  if (measured) write_measured(machine, *measured, output);

  std::vector<Finding> findings = {
      {"ringlab", build.version, ""},
      {"compiler", fmt::format("{}, {}", build.compiler, build.build_type), build.flags},
      processor_finding(machine.processor),
      {"SIMD", fmt::format("{}", fmt::join(machine.processor.simd, " ")), simd_effect()},
      memory_finding(machine.memory)};
  for (const Finding& finding : cuda_findings(build, machine.driver)) findings.push_back(finding);
  findings.push_back(nccl_finding(machine.nccl));
  findings.push_back(cudnn_finding(machine.cudnn));
  findings.push_back(mpi_finding(machine.mpi));

  TextTable table({{"what"}, {"found"}, {"enables"}});
  for (const Finding& finding : findings)
    table.add({finding.topic, finding.found, finding.enables});
  output.write(table.text());
  return output.finish("doctor", machine_json(build, machine));
}

}  // namespace

Command doctor_command() {
  Command command{"doctor", "what this machine and this build have, and what that enables"};
  command.options = {
      {"measure", "FILE.json",
       "measure the cores of this machine, about half a minute, and write them as a machine "
       "for simulate and plan"},
      json_option()};
  command.examples = {"ringlab doctor", "ringlab doctor --json -",
                      "ringlab doctor --measure here.json"};
  command.run = doctor;
  return command;
}

}  // namespace ringlab::cli
