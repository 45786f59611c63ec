#include "reference/model/machine_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "reference/core/error.h"
#include "reference/io/input_file.h"
#include "reference/io/outside_json.h"

namespace ringlab::model {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kMostBytes = std::int64_t{1} << 20;
constexpr io::JsonLimits kLimits{.what = "machine", .depth = 5, .keys = 64, .values = 10000};
constexpr double kMostFigure = 1e30;  // in the unit of the file: what none of them comes near
constexpr std::array kWirings = {Wiring::switched, Wiring::direct, Wiring::shared};

/// An object of the file, with the way to it; every key of it has to be asked for.
class Fields {
 public:
  Fields(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json.is_object()) refuse("", "an object", json);
  }

  bool has(const std::string& key) const { return json_.contains(key); }
  const Json& at(const std::string& key) {
    asked_.push_back(key);
    const auto found = json_.find(key);
    if (found == json_.end()) fail("", "\"" + key + "\"", "none");
    return *found;
  }
  std::string text(const std::string& key) {
    const Json& value = at(key);
    if (!value.is_string()) refuse(key, "a text", value);
    return io::printable(value.get<std::string>());
  }
  double number(const std::string& key) {
    const Json& value = at(key);
    if (!value.is_number()) refuse(key, "a number", value);
    return value.get<double>();
  }
  std::int64_t whole(const std::string& key, std::int64_t least, std::int64_t most) {
    const double value = number(key);
    const bool fits = value == std::floor(value) && value >= static_cast<double>(least) &&
                      value <= static_cast<double>(most);
    if (!fits) {
      refuse(key, "a whole number, " + std::to_string(least) + " to " + std::to_string(most),
             at(key));
    }
    return static_cast<std::int64_t>(value);
  }
  double positive(const std::string& key) {
    const double value = number(key);
    if (!(value > 0 && value <= kMostFigure)) refuse(key, "a number above 0, up to 1e30", at(key));
    return value;
  }
  double not_negative(const std::string& key) {
    const double value = number(key);
    if (!(value >= 0 && value <= kMostFigure)) refuse(key, "a number from 0 up to 1e30", at(key));
    return value;
  }
  double share(const std::string& key) {
    const double value = number(key);
    if (!(value > 0 && value <= 1)) refuse(key, "a share above 0, 1 at most", at(key));
    return value;
  }
  double share_or_none(const std::string& key) {
    const double value = number(key);
    if (!(value >= 0 && value <= 1)) refuse(key, "a share from 0 to 1", at(key));
    return value;
  }
  /// {"value": X, "source": TEXT}, in `unit`s; `value` is one of those above.
  double figure(const std::string& key, double unit,
                double (Fields::*value)(const std::string&) = &Fields::positive) {
    Fields fields = inside(key);
    const double found = (fields.*value)("value") * unit;
    fields.text("source");
    fields.end();
    return found;
  }
  Fields inside(const std::string& key) { return {at(key), where_ + ": " + key}; }
  std::vector<Fields> list(const std::string& key) {
    const Json& value = at(key);
    if (!value.is_array()) refuse(key, "a list", value);
    std::vector<Fields> all;
    for (const Json& each : value) all.emplace_back(each, where_ + ": " + key);
    return all;
  }
  /// Refuses what nobody has asked for: a figure that is misspelt must not be ignored.
  void end() const {
    for (const auto& [key, value] : json_.items()) {
      if (std::ranges::count(asked_, key) == 0) {
        fail("", "keys that machines have", "\"" + io::printable(key) + "\"");
      }
    }
  }
  [[noreturn]] void refuse(const std::string& key, const std::string& expected,
                           const Json& found) const {
    fail(key, expected, io::printable(found.dump().substr(0, 40)));
  }
  [[noreturn]] void fail(const std::string& key, const std::string& expected,
                         const std::string& found) const {
    throw_input_error({.where = key.empty() ? where_ : where_ + ": " + key,
                       .expected = expected,
                       .actual = found,
                       .hint = "docs/formats.md says what a machine's file has."});
  }

 private:
  const Json& json_;
  std::string where_;
  std::vector<std::string> asked_;
};

/// `measured`: with mask and length.
KernelSpeed speed_of(Fields fields, bool measured) {
  KernelSpeed speed;
  try {
    speed.dtype = parse_dtype(fields.text("dtype"));
  } catch (const Error&) {
    fields.refuse("dtype", "a type", fields.at("dtype"));
  }
  speed.head_dim = fields.whole("head_dim", 1, 65536);
  if (measured) {
    const std::string mask = fields.text("mask");
    if (mask != "full" && mask != "causal") fields.fail("mask", "full or causal", mask);
    speed.causal = mask == "causal";
    speed.tokens = fields.whole("tokens", 1, std::int64_t{1} << 40);
  }
  speed.forward_flops = fields.positive("forward_tflops") * kTera;
  speed.backward_flops = fields.positive("backward_tflops") * kTera;
  speed.source = fields.text("source");
  fields.end();
  return speed;
}

std::vector<KernelSpeed> speeds_of(Fields& fields, bool measured) {
  std::vector<KernelSpeed> speeds;
  for (const Fields& each : fields.list("attention")) {
    const KernelSpeed speed = speed_of(each, measured);
    const auto is_same = [&](const KernelSpeed& other) {
      return other.dtype == speed.dtype && other.head_dim == speed.head_dim &&
             other.causal == speed.causal && other.tokens == speed.tokens;
    };
    if (std::ranges::any_of(speeds, is_same)) {
      fields.fail("attention", "a speed for each kind once",
                  std::string(dtype_info(speed.dtype).name) + " and head_dim " +
                      std::to_string(speed.head_dim) + " twice");
    }
    speeds.push_back(speed);
  }
  return speeds;
}

LinkSpeed link_of(Fields& fields) {
  return {.bytes_per_s = fields.figure("gb_per_s", kGiga),
          .latency_s = fields.figure("latency_us", kMicro, &Fields::not_negative)};
}

Wiring wiring_of(Fields& fields) {
  const std::string name = fields.text("wiring");
  const auto found = std::ranges::find(kWirings, name, wiring_name);
  if (found == kWirings.end()) fields.fail("wiring", "switched, direct or shared", name);
  return *found;
}

/// 1 where it is not said.
double share_of(Fields& fields, const std::string& key) {
  return fields.has(key) ? fields.figure(key, 1, &Fields::share) : 1;
}

Expected expected_of(Fields fields) {
  Expected expected;
  if (fields.has("attention")) expected.attention = speeds_of(fields, true);
  if (fields.has("merge_bytes")) {
    expected.merge_bytes = fields.figure("merge_bytes", 1, &Fields::not_negative);
  }
  expected.link_share = share_of(fields, "link_share");
  expected.product_share = share_of(fields, "product_share");
  if (fields.has("transfer_share")) {
    expected.transfer_share = fields.figure("transfer_share", 1, &Fields::share_or_none);
  }
  fields.end();
  return expected;
}

/// The speed that the machine is known by: of bf16, or of the first type that it has.
const KernelSpeed& best_known(const std::vector<KernelSpeed>& speeds) {
  const auto found = std::ranges::find_if(speeds, [](const KernelSpeed& speed) {
    return speed.dtype == DType::bf16 && speed.head_dim == 128;
  });
  return found == speeds.end() ? speeds.front() : *found;
}

}  // namespace

Machine machine_of_json(std::string_view text, const std::string& where) {
  io::check_json(text, kLimits, where);
  const Json json = Json::parse(text);
  Fields fields(json, where);
  if (fields.whole("schema", 1, 1000) != 1) fields.refuse("schema", "1", fields.at("schema"));
  Machine machine;
  machine.name = fields.text("name");
  machine.source = fields.text("title");
  machine.attention = speeds_of(fields, false);
  if (machine.attention.empty()) fields.fail("attention", "at least one speed", "none");
  machine.forward_flops = best_known(machine.attention).forward_flops;
  machine.backward_flops = best_known(machine.attention).backward_flops;
  if (fields.has("product_tflops")) machine.product_flops = fields.figure("product_tflops", kTera);
  machine.memory_bytes = fields.figure("memory_gb", kGiga);
  machine.memory_bytes_per_s = fields.figure("memory_gb_per_s", kGiga);
  machine.block_s = fields.figure("block_us", kMicro, &Fields::not_negative);
  Fields node = fields.inside("node");
  machine.node_ranks = static_cast<int>(node.whole("ranks", 1, 1 << 20));
  machine.wiring = wiring_of(node);
  machine.inside = link_of(node);
  node.end();
  Fields between = fields.inside("between_nodes");
  machine.outside = link_of(between);
  between.end();
  if (fields.has("expected")) machine.expected = expected_of(fields.inside("expected"));
  fields.end();
  check_machine(machine);
  return machine;
}

Machine read_machine(const std::string& path) {
  const std::vector<std::byte> bytes = io::read_file(path, kMostBytes);
  return machine_of_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

Machine machine_named(const std::string& name) {
  return name.ends_with(".json") ? read_machine(name) : find_machine(name);
}

}  // namespace ringlab::model
