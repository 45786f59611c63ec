/* All score modifiers in plain loops, f32; claims those whose bits RINGLAB_TEST_MODIFIERS has.
 * Which pairs are dropped it reads from the bytes of the call. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "ringlab_plugin.h"

typedef struct {
  int64_t batch, head, query;
} row_t;

static uint32_t claimed(void) {
  const char* bits = getenv("RINGLAB_TEST_MODIFIERS");
  return bits != NULL ? (uint32_t)strtoul(bits, NULL, 10) : 0;
}

static float score(const ringlab_call* call, row_t at, const float* q, const float* k, int64_t j) {
  const ringlab_modifiers* modifiers = &call->modifiers;
  const float cap = (float)modifiers->softcap;
  float sum = 0;
  for (int64_t c = 0; c < call->q.extents[3]; ++c) sum += q[c] * k[c];
  sum *= (float)call->scale;
  if (cap != 0) sum = cap * tanhf(sum / cap);
  if (modifiers->alibi_slopes == NULL) return sum;
  const int64_t apart = call->mask.positions[at.query] - j;
  return sum - (float)modifiers->alibi_slopes[at.head] * fabsf((float)apart);
}

/* 0 for pairs that are dropped. */
static float factor(const ringlab_call* call, row_t at, int64_t j) {
  const ringlab_modifiers* modifiers = &call->modifiers;
  if (modifiers->kept == NULL) return 1;
  const int64_t row = (at.batch * call->q.extents[1] + at.head) * call->q.extents[2] + at.query;
  const int kept = modifiers->kept[row * call->k.extents[2] + j];
  return kept ? (float)modifiers->dropout_factor : 0;
}

static void attend_row(const ringlab_call* call, row_t at, const float* q, const float* k,
                       const float* v, float* scores, float* o, float* lse) {
  const int64_t head_dim = call->q.extents[3], v_dim = call->v.extents[3];
  const int64_t begin = call->mask.visible_begin[at.query];
  const int64_t end = call->mask.visible_end[at.query];
  const double* sinks = call->modifiers.sinks;
  float top = sinks != NULL ? (float)sinks[at.head] : -INFINITY;
  float sum = sinks != NULL ? 1 : 0;
  for (int64_t c = 0; c < v_dim; ++c) o[c] = 0;
  for (int64_t j = begin; j < end; ++j) {
    scores[j] = score(call, at, q, k + j * head_dim, j);
    if (scores[j] > top) {
      sum *= expf(top - scores[j]);
      top = scores[j];
    }
  }
  for (int64_t j = begin; j < end; ++j) {
    const float weight = expf(scores[j] - top), kept = factor(call, at, j);
    sum += weight;
    for (int64_t c = 0; kept != 0 && c < v_dim; ++c) o[c] += weight * kept * v[j * v_dim + c];
  }
  for (int64_t c = 0; sum != 0 && c < v_dim; ++c) o[c] /= sum;
  *lse = sum != 0 ? top + logf(sum) : -INFINITY;
}

static int32_t run(const ringlab_call* call, void* context) {
  (void)context;
  const int64_t heads = call->q.extents[1], queries = call->q.extents[2];
  const int64_t kv_heads = call->k.extents[1], keys = call->k.extents[2];
  const int64_t head_dim = call->q.extents[3], v_dim = call->v.extents[3];
  const float *q = call->q.data, *k = call->k.data, *v = call->v.data;
  float *o = call->o.data, *lse = call->lse.data;
  if ((call->modifiers.kinds & ~claimed()) != 0) {
    snprintf(call->message, call->message_size, "asked for modifiers %u of %u",
             call->modifiers.kinds, claimed());
    return 2;
  }
  float* scores = malloc((size_t)(keys + 1) * sizeof(float));
  if (scores == NULL) return 3;
  for (int64_t row = 0; row < call->q.extents[0] * heads * queries; ++row) {
    const row_t at = {row / (heads * queries), row / queries % heads, row % queries};
    const int64_t kv = at.batch * kv_heads + at.head / (heads / kv_heads);
    attend_row(call, at, q + row * head_dim, k + kv * keys * head_dim, v + kv * keys * v_dim,
               scores, o + row * v_dim, lse + row);
  }
  free(scores);
  return RINGLAB_OK;
}

RINGLAB_PLUGIN_EXPORT const ringlab_plugin* ringlab_plugin_v1(void) {
  static ringlab_plugin plugin = {
      .struct_size = sizeof(ringlab_plugin),
      .version = RINGLAB_PLUGIN_VERSION,
      .name = "modified",
      .title = "all score modifiers in plain loops",
      .can = {.dtypes = RINGLAB_DTYPE_BIT(RINGLAB_F32),
              .masks = RINGLAB_MASK_INTERVALS,
              .lse = 1,
              .grouped_heads = 1,
              .rectangular = 1,
              .other_v_dim = 1,
              .no_tokens = 1,
              .empty_rows = 1,
              .any_scale = 1,
              .deterministic = 1,
              .masked_may_be_nan = 1},
      /* Nothing but the weight of the sink is rescaled, when a score beats it. */
      .numerics = {[RINGLAB_F32] = {.keys_per_rescale = 1}},
      .run = run};
  plugin.can.modifiers = claimed();
  return &plugin;
}
