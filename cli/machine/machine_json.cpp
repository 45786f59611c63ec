#include "cli/machine/machine_json.h"

#include <fmt/format.h>

#include "reference/model/machine.h"
#include "reference/model/machine_file.h"

namespace ringlab::cli {
namespace {

using Json = nlohmann::ordered_json;

Json rounded(double value) { return std::stod(fmt::format("{:.4g}", value)); }

}  // namespace

Json figure(double value, const std::string& source) {
  return {{"value", rounded(value)}, {"source", source}};
}

Json speed_json(const model::KernelSpeed& speed, bool with_place) {
  Json json = {{"dtype", std::string(dtype_info(speed.dtype).name)}, {"head_dim", speed.head_dim}};
  if (with_place) {
    json["mask"] = speed.causal ? "causal" : "full";
    json["tokens"] = speed.tokens;
  }
  json["forward_tflops"] = rounded(speed.forward_flops / model::kTera);
  json["backward_tflops"] = rounded(speed.backward_flops / model::kTera);
  json["source"] = speed.source;
  return json;
}

Json assumed_network() {
  return {{"gb_per_s", figure(1.25, "assumed: 10 Gb/s")}, {"latency_us", figure(30, "assumed")}};
}

std::string machine_text(const Json& machine) {
  std::string text = machine.dump(2) + "\n";
  model::machine_of_json(text, machine.at("name").get<std::string>());
  return text;
}

}  // namespace ringlab::cli
