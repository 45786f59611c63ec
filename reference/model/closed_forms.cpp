#include "reference/model/closed_forms.h"

namespace ringlab::model {

double hidden_from_tokens(const Work& work, const Machine& machine, const LinkSpeed& link,
                          double pair_share) {
  const auto bytes = static_cast<double>(work.kv_bytes_per_token + work.sum_bytes_per_token);
  const auto flops = static_cast<double>(work.flops_per_pair);
  return bytes / link.bytes_per_s * machine.flops(work.pass) / (pair_share * flops);
}

}  // namespace ringlab::model
