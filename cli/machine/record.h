// The document of measurements that take long, and of the machine they were made on.
#pragma once

#include <string>

#include "cli/line/arguments.h"
#include "cli/line/output.h"

namespace ringlab::cli {

/// The document of --json FILE, written anew with every part, so that measured figures stay if the
/// program is ended. "complete" says whether the run came to its end. `output` outlives it.
class Record {
 public:
  /// `head`: the fields known before anything is measured. They are written with the first part,
  /// after the date, the command line and what `ringlab doctor` says of this machine.
  Record(Output& output, const Arguments& arguments, const Json& head);

  /// Sets `part` to `value`, in place of its earlier value.
  void keep(const std::string& part, const Json& value);
  /// Marks the record as complete; returns `code`, the exit code where it is known: Output::finish().
  int finish(int code = kNoResults);

 private:
  Output& output_;
  std::string command_;
  Json document_ = {{"complete", false}};
};

}  // namespace ringlab::cli
