#include "cli/report/profile_json.h"

#include <string>

namespace ringlab::report {

nlohmann::ordered_json profile_json(const NumericsProfile& profile) {
  return {{"out_dtype", std::string(dtype_info(profile.out_dtype).name)},
          {"u_accumulate", profile.u_accumulate},
          {"u_work", profile.u_work},
          {"exp_error", profile.exp_error},
          {"tanh_error", profile.tanh_error},
          {"tanh_floor", profile.tanh_floor},
          {"u_probability", profile.u_probability},
          {"u_row_sum", profile.u_row_sum},
          {"p_underflow", profile.p_underflow},
          {"u_partial", profile.u_partial},
          {"u_query", profile.u_query},
          {"u_product", profile.u_product},
          {"u_lse", profile.u_lse},
          {"max_rescales", profile.max_rescales},
          {"lse_merges", profile.lse_merges},
          {"accumulation_chain", profile.accumulation_chain},
          {"key_gradient_stores", profile.key_gradient_stores},
          {"query_gradient_stores", profile.query_gradient_stores},
          {"product_underflow", profile.product_underflow},
          {"exp_underflow", profile.exp_underflow},
          {"u_wire", profile.u_wire},
          {"wire_floor", profile.wire_floor},
          {"wire_underflow", profile.wire_underflow}};
}

}  // namespace ringlab::report
