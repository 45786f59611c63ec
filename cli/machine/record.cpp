#include "cli/machine/record.h"

#include "cli/line/build_info.h"
#include "cli/machine/findings.h"

namespace ringlab::cli {

Record::Record(Output& output, const Arguments& arguments, const Json& head)
    : output_(output), command_(arguments.words().front()) {
  document_["date"] = utc_now();
  document_["words"] = arguments.words();
  document_["machine"] = machine_json(build_info(), find_machine());
  document_.update(head);
}

void Record::keep(const std::string& part, const Json& value) {
  document_[part] = value;
  output_.keep(command_, document_);
}

int Record::finish(int code) {
  document_["complete"] = true;
  return output_.finish(command_, document_, code);
}

}  // namespace ringlab::cli
