/* Attention as two matrix products per head, S = Q Kᵀ and O = P V, with any CBLAS. The whole score
 * matrix is kept. */
#include <cblas.h>
#include <math.h>
#include <stdlib.h>

#include "ringlab_plugin.h"

/* Scores of one row to weights; returns the log-sum-exp. */
static float softmax(float* s, int64_t keys, int64_t begin, int64_t end) {
  float top = -INFINITY, sum = 0;
  for (int64_t j = begin; j < end; ++j) top = fmaxf(top, s[j]);
  for (int64_t j = 0; j < keys; ++j) {
    s[j] = j >= begin && j < end ? expf(s[j] - top) : 0.0f;
    sum += s[j];
  }
  for (int64_t j = begin; j < end; ++j) s[j] /= sum;
  return begin == end ? -INFINITY : top + logf(sum);
}

static int32_t run(const ringlab_call* call, void* context) {
  (void)context;
  const int64_t heads = call->q.extents[1], kv_heads = call->k.extents[1];
  const int64_t rows = call->q.extents[2], keys = call->k.extents[2];
  const int64_t d = call->q.extents[3], dv = call->v.extents[3];
  float* s = malloc((size_t)(rows * keys) * sizeof(float));
  if (s == NULL) return 2;
  for (int64_t head = 0; head < call->q.extents[0] * heads; ++head) {
    const int64_t kv = head / heads * kv_heads + head % heads / (heads / kv_heads);
    const float* q = (const float*)call->q.data + head * rows * d;
    const float* k = (const float*)call->k.data + kv * keys * d;
    const float* v = (const float*)call->v.data + kv * keys * dv;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)rows, (int)keys, (int)d,
                (float)call->scale, q, (int)d, k, (int)d, 0, s, (int)keys);
    for (int64_t i = 0; i < rows; ++i) {
      ((float*)call->lse.data)[head * rows + i] = softmax(
          s + i * keys, keys, call->mask.visible_begin[i], call->mask.visible_end[i]);
    }
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)rows, (int)dv, (int)keys, 1, s,
                (int)keys, v, (int)dv, 0, (float*)call->o.data + head * rows * dv, (int)dv);
  }
  free(s);
  return RINGLAB_OK;
}

/* masked_may_be_nan stays 0: P V multiplies what is masked by zero, and 0 · NaN is NaN. The bits of
 * a row depend on how the library cuts a matrix, and weights are divided before they meet V. */
static const ringlab_plugin plugin = {
    .struct_size = sizeof(ringlab_plugin),
    .version = RINGLAB_PLUGIN_VERSION,
    .name = "blas",
    .title = "two matrix products per head",
    .can = {.dtypes = RINGLAB_DTYPE_BIT(RINGLAB_F32),
            .masks = RINGLAB_MASK_INTERVALS,
            .lse = 1,
            .grouped_heads = 1,
            .rectangular = 1,
            .other_v_dim = 1,
            .empty_rows = 1,
            .any_scale = 1,
            .deterministic = 1},
    /* One rounding more per weight: they are divided before they meet V. */
    .numerics = {[RINGLAB_F32] = {.keys_per_rescale = INT64_MAX, .exp_error = 0x1p-21}},
    .run = run};

RINGLAB_PLUGIN_EXPORT const ringlab_plugin* ringlab_plugin_v1(void) { return &plugin; }
