/* Zeros, with the arithmetic that would excuse them: every bound of it is infinite. Where the
 * environment variable RINGLAB_TEST_KERNEL says "wide", the lse is right, and the bounds of o are
 * finite and wider than the answer. */
#define ringlab_plugin_v1 right_plugin
#include "docs/plugins/template/attention.c"
#undef ringlab_plugin_v1

#include <string.h>

static int is_wide(void) {
  const char* wanted = getenv("RINGLAB_TEST_KERNEL");
  return wanted != NULL && strcmp(wanted, "wide") == 0;
}

static int32_t zeros(const ringlab_call* call, void* context) {
  const int64_t queries = call->q.extents[2], v_dim = call->v.extents[3];
  const int64_t rows = call->q.extents[0] * call->q.extents[1] * queries;
  float *o = call->o.data, *lse = call->lse.data;
  const int32_t ended = run(call, context);
  if (ended != RINGLAB_OK) return ended;
  for (int64_t i = 0; i < rows * v_dim; ++i) o[i] = 0;
  for (int64_t row = 0; row < rows; ++row) {
    if (!is_wide() && lse[row] != -INFINITY) lse[row] = 0;
  }
  return RINGLAB_OK;
}

RINGLAB_PLUGIN_EXPORT const ringlab_plugin* ringlab_plugin_v1(void) {
  static ringlab_plugin absurd;
  absurd = plugin;
  absurd.run = zeros;
  if (is_wide()) {
    absurd.numerics[RINGLAB_F32].u_probability = 0.99;
    absurd.numerics[RINGLAB_F32].p_underflow = 0.99;
  } else {
    absurd.numerics[RINGLAB_F32].u_accumulate = 0.9;
  }
  return &absurd;
}
