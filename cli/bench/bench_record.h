// The JSON of `ringlab bench`, part by part.
#pragma once

#include <string>

#include "cli/line/arguments.h"
#include "cli/line/output.h"

namespace ringlab::cli {

/// What --json FILE gets: written anew with every part, so that what is measured stays if the
/// program is ended. "complete" says whether the run came to its end. `output` outlives it.
class BenchRecord {
 public:
  /// `head` is what is known before anything is measured. It comes with the first part, after the
  /// date, the command line and what `ringlab doctor` says of this machine.
  BenchRecord(Output& output, const Arguments& arguments, const Json& head);

  /// Takes the place of what the part was before.
  void keep(const std::string& part, const Json& value);
  /// All parts are there.
  void finish();

 private:
  Output& output_;
  Json document_ = {{"complete", false}};
};

}  // namespace ringlab::cli
