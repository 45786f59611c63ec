// self_check [--mistaken]: exits 0 when all self checks hold; with --mistaken, when one does not.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string>

#include "tests/verifier_mistakes/checks.h"

int main(int count, char** words) {
  const bool mistaken = count > 1 && std::string(words[1]) == "--mistaken";
  int held = 0;
  for (const ringlab::verify::SelfCheck& check : ringlab::verify::self_checks()) {
    std::string complaint;
    try {
      complaint = check.check();
    } catch (const std::exception& error) {
      complaint = error.what();
    }
    if (!complaint.empty()) {
      fmt::print("{}: {}\n", check.name, complaint);
      return mistaken ? 0 : 1;
    }
    ++held;
  }
  fmt::print("{} self checks hold\n", held);
  return mistaken ? 1 : 0;
}
