#include "reference/model/training/choices.h"

namespace ringlab::model {
namespace {

constexpr std::int64_t kTokensApart = 1024, kMostLong = std::int64_t{1} << 36;

}  // namespace

std::int64_t longest_that_fits(std::int64_t asked,
                               const std::function<bool(std::int64_t)>& has_ways,
                               const std::function<bool(std::int64_t)>& fits) {
  std::int64_t holds = 0, fails = kTokensApart;
  while (fails < kMostLong && !has_ways(fails)) fails *= 2;
  while (fails < kMostLong && fits(fails)) {
    holds = fails;
    fails *= 2;
  }
  while (fails - holds > std::max(kTokensApart, holds / 16)) {
    const std::int64_t middle = (holds + fails) / 2 / kTokensApart * kTokensApart;
    (fits(middle) ? holds : fails) = middle;
  }
  return asked > holds && fits(asked) ? asked : holds;
}

}  // namespace ringlab::model
