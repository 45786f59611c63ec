/* A plugin to start from: attention in three plain loops, f32.
 *
 * Put your kernel in attend_row() or in run(), and then claim in `plugin` what it can do. What is
 * not claimed is not tested. */
#include <math.h>
#include <stdlib.h>

#include "ringlab_plugin.h"

static float dot(const float* x, const float* y, int64_t n) {
  float sum = 0;
  for (int64_t c = 0; c < n; ++c) sum += x[c] * y[c];
  return sum;
}

/* One query against keys [begin, end). k and v are those of its head. */
static void attend_row(const ringlab_call* call, const float* q, const float* k, const float* v,
                       int64_t begin, int64_t end, float* scores, float* o, float* lse) {
  const int64_t head_dim = call->q.extents[3], v_dim = call->v.extents[3];
  float top = -INFINITY, sum = 0;
  for (int64_t c = 0; c < v_dim; ++c) o[c] = 0;
  if (begin == end) { /* sees nothing */
    *lse = -INFINITY;
    return;
  }
  for (int64_t j = begin; j < end; ++j) {
    scores[j] = (float)call->scale * dot(q, k + j * head_dim, head_dim);
    if (scores[j] > top) top = scores[j];
  }
  for (int64_t j = begin; j < end; ++j) {
    const float weight = expf(scores[j] - top);
    sum += weight;
    for (int64_t c = 0; c < v_dim; ++c) o[c] += weight * v[j * v_dim + c];
  }
  for (int64_t c = 0; c < v_dim; ++c) o[c] /= sum;
  *lse = top + logf(sum);
}

static int32_t run(const ringlab_call* call, void* context) {
  (void)context;
  const float *q = call->q.data, *k = call->k.data, *v = call->v.data;
  float *o = call->o.data, *lse = call->lse.data;
  const int64_t batch = call->q.extents[0], heads = call->q.extents[1];
  const int64_t queries = call->q.extents[2], head_dim = call->q.extents[3];
  const int64_t kv_heads = call->k.extents[1], keys = call->k.extents[2];
  const int64_t v_dim = call->v.extents[3];
  float* scores = malloc((size_t)(keys + 1) * sizeof(float));
  if (scores == NULL) return 2;
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      const int64_t kv = b * kv_heads + h / (heads / kv_heads);
      for (int64_t i = 0; i < queries; ++i) {
        const int64_t row = (b * heads + h) * queries + i;
        attend_row(call, q + row * head_dim, k + kv * keys * head_dim, v + kv * keys * v_dim,
                   call->mask.visible_begin[i], call->mask.visible_end[i], scores, o + row * v_dim,
                   lse + row);
      }
    }
  }
  free(scores);
  return RINGLAB_OK;
}

static const ringlab_plugin plugin = {
    .struct_size = sizeof(ringlab_plugin),
    .version = RINGLAB_PLUGIN_VERSION,
    .name = "template",
    .title = "attention in three plain loops",
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
            .masked_may_be_nan = 1,
            .sums_keys_in_order = 1,
            .same_bits_per_row = 1,
            .divides_last = 1},
    /* The maximum is known before anything is summed up: nothing is rescaled. */
    .numerics = {[RINGLAB_F32] = {.keys_per_rescale = INT64_MAX}},
    .run = run};

RINGLAB_PLUGIN_EXPORT const ringlab_plugin* ringlab_plugin_v1(void) { return &plugin; }
