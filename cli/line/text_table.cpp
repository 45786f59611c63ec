#include "cli/line/text_table.h"

#include <algorithm>

namespace ringlab::cli {
namespace {

std::size_t code_points(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

std::string padded(const std::string& cell, std::size_t width, Align align) {
  const std::string space(width - std::min(width, code_points(cell)), ' ');
  return align == Align::left ? cell + space : space + cell;
}

}  // namespace

std::string TextTable::text() const {
  std::vector<std::vector<std::string>> lines(1);
  for (const Column& column : columns_) lines[0].push_back(column.title);
  lines.insert(lines.end(), rows_.begin(), rows_.end());
  std::vector<std::size_t> widths(columns_.size(), 0);
  for (const auto& line : lines) {
    for (std::size_t c = 0; c < line.size(); ++c) {
      widths[c] = std::max(widths[c], code_points(line[c]));
    }
  }
  std::string text;
  for (const auto& line : lines) {
    std::string row;
    for (std::size_t c = 0; c < line.size(); ++c) {
      row += (c ? "  " : "") + padded(line[c], widths[c], columns_[c].align);
    }
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  }
  return text;
}

}  // namespace ringlab::cli
