#include "cli/bench/bench.h"
#include "cli/line/build_info.h"
#include "cli/line/output.h"
#include "cli/machine/findings.h"

namespace ringlab::cli {
namespace {

constexpr const char* kBench = "bench";

}  // namespace

BenchRecord::BenchRecord(Output& output, const Arguments& arguments, const Json& head)
    : output_(output) {
  document_["date"] = utc_now();
  document_["words"] = arguments.words();
  document_["machine"] = machine_json(build_info(), find_machine());
  document_.update(head);
}

void BenchRecord::keep(const std::string& part, const Json& value) {
  document_[part] = value;
  output_.keep(kBench, document_);
}

void BenchRecord::finish() {
  document_["complete"] = true;
  output_.finish(kBench, document_);
}

}  // namespace ringlab::cli
