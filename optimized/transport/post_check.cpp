#include "optimized/transport/post_check.h"

#include <string>

#include "reference/core/error.h"

namespace ringlab {

void check_post(const PostedEnd& end, int ranks, int largest_tag) {
  const auto up_to = [](int last) { return " in 0 … " + std::to_string(last); };
  const auto refuse = [&](const std::string& expected, const std::string& actual) {
    throw_usage_error({.where = "rank " + std::to_string(end.rank) + ", " + end.call,
                       .expected = expected,
                       .actual = actual});
  };
  if (end.peer < 0 || end.peer >= ranks) {
    refuse("a peer" + up_to(ranks - 1), "rank " + std::to_string(end.peer));
  }
  if (end.tag < 0 || end.tag > largest_tag) {
    refuse("a tag" + up_to(largest_tag), "tag " + std::to_string(end.tag));
  }
}

}  // namespace ringlab
