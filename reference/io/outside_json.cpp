#include "reference/io/outside_json.h"

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "reference/core/error.h"
#include "reference/io/input_file.h"

namespace ringlab::io {
namespace {

using Json = nlohmann::json;

/// Hears of every part of a document in turn, and keeps none but the keys of the open objects.
class Guard final : public nlohmann::json_sax<Json> {
 public:
  Guard(const JsonLimits& limits, const std::string& where) : limits_(limits), where_(where) {}

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(Json::number_integer_t) override { return value(); }
  bool number_unsigned(Json::number_unsigned_t) override { return value(); }
  bool number_float(Json::number_float_t, const std::string&) override { return value(); }
  bool string(std::string&) override { return value(); }
  bool binary(Json::binary_t&) override { return value(); }
  bool start_object(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_array() override { return close(); }
  bool key(std::string& name) override {
    std::set<std::string>& known = keys_.back();
    if (!known.insert(name).second) fail("every key once", "\"" + printable(name) + "\" twice");
    if (std::ssize(known) > limits_.keys) {
      fail("objects of at most " + std::to_string(limits_.keys) + " keys", "one with more");
    }
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const Json::exception& error) override {
    fail("a JSON " + std::string(limits_.what), printable(error.what()));
  }

 private:
  bool value() {
    if (++values_ > limits_.values) {
      fail("a " + std::string(limits_.what) + " of at most " + std::to_string(limits_.values) +
               " values",
           "more");
    }
    return true;
  }
  bool open() {
    if (std::ssize(keys_) >= limits_.depth) {
      fail("a " + std::string(limits_.what) + " at most " + std::to_string(limits_.depth) +
               " levels deep",
           "a deeper one");
    }
    keys_.emplace_back();
    return value();
  }
  bool close() {
    keys_.pop_back();
    return true;
  }
  [[noreturn]] void fail(const std::string& expected, const std::string& actual) const {
    throw_input_error({.where = where_, .expected = expected, .actual = actual});
  }

  const JsonLimits& limits_;
  const std::string& where_;
  std::vector<std::set<std::string>> keys_;  // of each open list and object
  std::int64_t values_ = 0;
};

}  // namespace

void check_json(std::string_view text, const JsonLimits& limits, const std::string& where) {
  // The parser takes a NUL for the end of its input.
  if (text.find('\0') != std::string_view::npos) {
    throw_input_error(
        {.where = where, .expected = "a JSON " + std::string(limits.what), .actual = "a NUL byte"});
  }
  Guard guard(limits, where);
  Json::sax_parse(text.begin(), text.end(), &guard);
}

}  // namespace ringlab::io
