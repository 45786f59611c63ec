// Aligned columns for terminals.
#pragma once

#include <string>
#include <vector>

namespace ringlab::cli {

enum class Align { left, right };

struct Column {
  std::string title;
  Align align = Align::left;
};

/// Two spaces between columns, a title row, no rules. Widths count UTF-8 code points.
class TextTable {
 public:
  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace ringlab::cli
