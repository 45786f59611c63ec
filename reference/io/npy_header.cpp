#include "reference/io/npy_header.h"

#include <charconv>

#include "reference/core/error.h"
#include "reference/io/elements.h"
#include "reference/io/input_file.h"

namespace ringlab::io {
namespace {

/// A recursive-descent parser for the one dictionary that numpy writes. Every key must come exactly
/// once; unknown keys are errors, since they may change what the bytes mean.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  NpyHeader read() {
    expect('{');
    while (!accept('}')) {
      read_entry();
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) fail("nothing after the closing brace");
    if (!has_descr_ || !has_order_ || !has_shape_) fail("the keys descr, fortran_order and shape");
    return header_;
  }

 private:
  void read_entry() {
    const std::string key = read_string();
    expect(':');
    if (key == "descr" && !has_descr_) {
      has_descr_ = true;
      header_.descr = read_string();
    } else if (key == "fortran_order" && !has_order_) {
      has_order_ = true;
      header_.fortran_order = read_bool();
    } else if (key == "shape" && !has_shape_) {
      has_shape_ = true;
      header_.shape = read_shape();
    } else {  // unknown, or there already
      fail("each of the keys descr, fortran_order and shape once");
    }
  }

  std::string read_string() {
    skip_space();
    if (at_ == text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) fail("a quoted string");
    const char quote = text_[at_++];
    const std::size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) fail("the end of a string");
    std::string value(text_.substr(at_, end - at_));
    // Escapes never occur in what numpy writes here, and would need a second parser.
    if (value.find('\\') != std::string::npos) fail("a string without escapes");
    at_ = end + 1;
    return value;
  }

  bool read_bool() {
    skip_space();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return value;
    }
    fail("True or False");
  }

  /// A tuple: one extent needs its comma, as in Python.
  std::vector<std::int64_t> read_shape() {
    std::vector<std::int64_t> shape;
    expect('(');
    while (!accept(')')) {
      shape.push_back(read_extent());
      if (accept(',')) continue;
      if (shape.size() == 1) fail("a comma, since the shape is a tuple");
      expect(')');
      break;
    }
    return shape;
  }

  std::int64_t read_extent() {
    skip_space();
    std::uint64_t value = 0;  // unsigned: refuses a sign
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    // Refuses also numbers that a signed extent cannot hold.
    if (error != std::errc() || value > INT64_MAX) fail("an extent in 0 … 2^63-1");
    at_ += static_cast<std::size_t>(end - begin);
    return static_cast<std::int64_t>(value);
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }

  bool accept(char wanted) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  void expect(char wanted) {
    if (!accept(wanted)) fail(std::string("'") + wanted + "'");
  }

  [[noreturn]] void fail(const std::string& expected) const {
    const std::string rest(text_.substr(at_, 20));  // enough to recognise the place by
    throw_input_error({.where = where_ + ", byte " + std::to_string(at_) + " of the header",
                       .expected = expected,
                       .actual = rest.empty() ? "the end" : "\"" + printable(rest) + "\""});
  }

  std::string_view text_;
  const std::string& where_;
  std::size_t at_ = 0;
  NpyHeader header_;
  bool has_descr_ = false;
  bool has_order_ = false;
  bool has_shape_ = false;
};

}  // namespace

NpyHeader parse_npy_header(std::string_view text, const std::string& where) {
  return HeaderReader(text, where).read();
}

std::string npy_header_text(const NpyHeader& header) {
  std::string text = "{'descr': '";
  text += header.descr;
  text += header.fortran_order ? "', 'fortran_order': True, 'shape': "
                               : "', 'fortran_order': False, 'shape': ";
  text += shape_text(header.shape);
  text += ", }";
  return text;
}

}  // namespace ringlab::io
