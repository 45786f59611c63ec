/* The loop order of the first FlashAttention (Dao, Fu, Ermon, Rudra & Ré 2022, Algorithm 1): tiles
 * of keys outside, tiles of queries inside, and after each tile a normalised O is written back.
 * Scores may be soft-capped and have ALiBi. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ringlab_plugin.h"

enum { kRows = 8, kKeys = 16 };

typedef struct {
  const ringlab_call* call;
  const float *q, *k, *v; /* of one head */
  float *o, *max, *sum;
  int64_t rows, keys, d, dv;
  float softcap, slope; /* 0: none */
} head_t;

static int visible(const head_t* head, int64_t i, int64_t j) {
  return j >= head->call->mask.visible_begin[i] && j < head->call->mask.visible_end[i];
}

/* Soft-capping, and after it ALiBi: a slope times the distance of the two positions. */
static float modified(const head_t* head, int64_t i, int64_t j, float score) {
  const int64_t apart = head->call->mask.positions[i] - j;
  if (head->softcap != 0) score = head->softcap * tanhf(score / head->softcap);
  return score - head->slope * fabsf((float)apart);
}

/* S_ij of one row of a tile and its maximum. */
static float scores(const head_t* head, int64_t i, int64_t first, int64_t count, float* s) {
  float top = -INFINITY;
  for (int64_t j = 0; j < count; ++j) {
    float sum = 0;
    for (int64_t c = 0; c < head->d; ++c) {
      sum += head->q[i * head->d + c] * head->k[(first + j) * head->d + c];
    }
    sum = modified(head, i, first + j, (float)head->call->scale * sum);
    s[j] = visible(head, i, first + j) ? sum : -INFINITY;
    top = fmaxf(top, s[j]);
  }
  return top;
}

/* Lines 10 to 13 of the algorithm for one row. */
static void merge(head_t* head, int64_t i, int64_t first, int64_t count) {
  float s[kKeys];
  const float tile_max = scores(head, i, first, count, s);
  if (tile_max == -INFINITY) return; /* the whole tile is masked for this row */
  float tile_sum = 0;
  for (int64_t j = 0; j < count; ++j) tile_sum += s[j] = expf(s[j] - tile_max);
  const float max = fmaxf(head->max[i], tile_max);
  const float old_weight = expf(head->max[i] - max), new_weight = expf(tile_max - max);
  const float sum = old_weight * head->sum[i] + new_weight * tile_sum;
  for (int64_t c = 0; c < head->dv; ++c) {
    float tile = 0;
    for (int64_t j = 0; j < count; ++j) {
      if (s[j] != 0) tile += s[j] * head->v[(first + j) * head->dv + c];
    }
    float* o = &head->o[i * head->dv + c];
    *o = (head->sum[i] * old_weight * *o + new_weight * tile) / sum;
  }
  head->max[i] = max;
  head->sum[i] = sum;
}

static void attend(head_t* head) {
  for (int64_t i = 0; i < head->rows; ++i) {
    head->max[i] = -INFINITY;
    head->sum[i] = 0;
  }
  memset(head->o, 0, (size_t)(head->rows * head->dv) * sizeof(float));
  for (int64_t first = 0; first < head->keys; first += kKeys) {
    const int64_t count = head->keys - first < kKeys ? head->keys - first : kKeys;
    for (int64_t tile = 0; tile < head->rows; tile += kRows) {
      const int64_t end = tile + kRows < head->rows ? tile + kRows : head->rows;
      for (int64_t i = tile; i < end; ++i) merge(head, i, first, count);
    }
  }
}

/* Older callers have none to give. */
static void take_modifiers(head_t* head, int64_t q_head) {
  if (!RINGLAB_CALL_HAS(head->call, modifiers)) return;
  const ringlab_modifiers* given = &head->call->modifiers;
  head->softcap = (float)given->softcap;
  if (given->alibi_slopes != NULL) head->slope = (float)given->alibi_slopes[q_head];
}

static int32_t run(const ringlab_call* call, void* context) {
  (void)context;
  const int64_t heads = call->q.extents[1], kv_heads = call->k.extents[1];
  const int64_t rows = call->q.extents[2], keys = call->k.extents[2];
  const int64_t d = call->q.extents[3], dv = call->v.extents[3];
  float* state = malloc((size_t)(2 * rows + 1) * sizeof(float));
  if (state == NULL) return 2;
  for (int64_t h = 0; h < call->q.extents[0] * heads; ++h) {
    const int64_t kv = h / heads * kv_heads + h % heads / (heads / kv_heads);
    head_t head = {.call = call,
                   .q = (const float*)call->q.data + h * rows * d,
                   .k = (const float*)call->k.data + kv * keys * d,
                   .v = (const float*)call->v.data + kv * keys * dv,
                   .o = (float*)call->o.data + h * rows * dv,
                   .max = state,
                   .sum = state + rows,
                   .rows = rows,
                   .keys = keys,
                   .d = d,
                   .dv = dv};
    take_modifiers(&head, h % heads);
    attend(&head);
    for (int64_t i = 0; i < rows; ++i) {
      ((float*)call->lse.data)[h * rows + i] = head.max[i] + logf(head.sum[i]);
    }
  }
  free(state);
  return RINGLAB_OK;
}

static const ringlab_plugin plugin = {
    .struct_size = sizeof(ringlab_plugin),
    .version = RINGLAB_PLUGIN_VERSION,
    .name = "flash1",
    .title = "the loop order of the first FlashAttention",
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
            .same_bits_per_row = 1,
            .divides_last = 1,
            .modifiers = RINGLAB_MODIFIER_SOFTCAP | RINGLAB_MODIFIER_ALIBI},
    /* O is divided and multiplied again at every tile: one rounding of it more per rescale. */
    .numerics = {[RINGLAB_F32] = {.keys_per_rescale = kKeys, .u_partial = 0x1p-22}},
    .run = run};

RINGLAB_PLUGIN_EXPORT const ringlab_plugin* ringlab_plugin_v1(void) { return &plugin; }
