#include "cli/viewer/viewer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "cli/viewer/page_text.h"

namespace ringlab::viewer {
namespace {

using Replacement = std::pair<std::string_view, std::string_view>;

template <std::size_t size>
std::string replaced(std::string_view text, const std::array<Replacement, size>& all) {
  std::string result;
  while (!text.empty()) {
    const auto found = std::ranges::find_if(
        all, [&](const Replacement& one) { return text.starts_with(one.first); });
    result += found == all.end() ? text.substr(0, 1) : found->second;
    text.remove_prefix(found == all.end() ? 1 : found->first.size());
  }
  return result;
}

// In JSON these signs occur in strings only. None may end the element that holds the data.
constexpr std::array<Replacement, 5> kInData = {{{"<", "\\u003c"},
                                                 {">", "\\u003e"},
                                                 {"&", "\\u0026"},
                                                 {"\xe2\x80\xa8", "\\u2028"},
                                                 {"\xe2\x80\xa9", "\\u2029"}}};
constexpr std::array<Replacement, 5> kInText = {
    {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}}};

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t'; }

}  // namespace

std::string_view style_sheet() { return kStyle; }

std::string escape(std::string_view text) {
  std::string safe = replaced(text, kInText);
  std::erase_if(safe, is_control);
  return safe;
}

std::string page(std::string_view document, std::string_view words) {
  return std::string(kHead) + kStyle + kBody + escape(words) + kMiddle +
         replaced(document, kInData) + kTail;
}

}  // namespace ringlab::viewer
