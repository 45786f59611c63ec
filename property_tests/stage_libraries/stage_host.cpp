// ringlab-stage-host LIBRARY MEMORY_BYTES: a process of its own for a stage that somebody else
// wrote, with all its ranks.
#include <unistd.h>

#include <cstring>
#include <exception>
#include <optional>

#include "property_tests/plugins/host_service.h"
#include "property_tests/stage_libraries/run_bytes.h"
#include "property_tests/stage_libraries/stage_library.h"

namespace {

using namespace ringlab;
using plugins::CallMessage;
using plugins::Reply;
using plugins::ReplyKind;

/// Writes bytes; false where the file, whose size is fixed, is too small for them.
bool write_bytes(int file, const std::vector<std::uint8_t>& bytes) {
  return pwrite(file, bytes.data(), bytes.size(), 0) == std::ssize(bytes);
}

Error thrown(const std::string& what) {
  return {ErrorKind::environment, {"the stage", "a result", "an exception: " + what, ""}};
}

class StageOfOthers : public plugins::Hosted {
 public:
  Reply load(const char* path) override {
    void* symbol = plugins::loaded_symbol(path, stages::kStageSymbol);
    const stages::StageLibrary* (*entry)() = nullptr;
    std::memcpy(&entry, &symbol, sizeof(entry));
    library_ = entry();
    if (library_ == nullptr || library_->version != stages::StageLibrary{}.version ||
        library_->run == nullptr) {
      plugins::refuse("it is of another version of this interface");
    }
    Reply reply;
    plugins::put(reply.name, sizeof(reply.name), library_->stage);
    return reply;
  }

  void call(CallMessage& /*message*/, plugins::File inputs, plugins::File outputs,
            Reply& reply) override {
    const auto given = verify::run_of_bytes(plugins::contents(inputs));
    inputs = plugins::File();
    if (!write_bytes(outputs.get(), answer(*given))) {
      reply.kind = ReplyKind::threw;
      plugins::put(reply.message, sizeof(reply.message), "more is noted than a run can have done");
    }
  }

 private:
  std::vector<std::uint8_t> answer(const verify::GivenRun& given) const {
    std::optional<RecordedRun> record;
    if (given.recorded == verify::Recorded::yes) record.emplace();
    const auto calls = [&] { return record ? record->ranks() : verify::Calls(); };
    try {
      const RunResult result = library_->run(given.input, given.options);
      return verify::bytes_of_result(result, calls());
    } catch (const Error& error) {
      return verify::bytes_of_error(error, calls());
    } catch (const std::exception& error) {
      return verify::bytes_of_error(thrown(error.what()), calls());
    } catch (...) {
      return verify::bytes_of_error(thrown("something that is no std::exception"), calls());
    }
  }

  const stages::StageLibrary* library_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  StageOfOthers stage;
  return plugins::serve_foreign_code(argc, argv, stage);
}
