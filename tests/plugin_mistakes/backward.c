/* Gradients of q, k and v: weights again from the lse, sums in f32, rounded once. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/plugin_mistakes/row.h"

typedef struct {
  float *q, *k, *v;
  size_t q_count, k_count, v_count;
} sums_t;

static size_t count_of(const ringlab_tensor* tensor) {
  const int64_t* n = tensor->extents;
  return (size_t)(n[0] * n[1] * n[2] * n[3]);
}

/* dk keeps its memory from call to call, and is cleared when that grows. */
static float* kept_memory(size_t count) {
  static float* memory;
  static size_t size;
  if (size < count + 1) {
    free(memory);
    memory = calloc(count + 1, sizeof(float));
    size = memory == NULL ? 0 : count + 1;
  }
  return memory;
}

static int is_last_of_a_window(const row_t* row) {
  const int has_window = (row->call->mask.kinds & RINGLAB_MASK_WINDOW) != 0;
  return has_window && row->i + 1 == row->call->q.extents[2];
}

static void add_pair(const row_t* row, int64_t j, float lse, float delta, const float* dout,
                     const sums_t* sums, float* dq) {
  float slope_of_cap, dp = 0;
  const float* v = row->v + j * row->v_dim;
  const float weight = weight_of(score(row, j, &slope_of_cap) - lse), f = share_kept(row, j);
  const float rounded = IS(bf16_weights) ? rounded_to(weight, 8) : weight;
  float* dk = sums->k + (row->kv * row->keys + j) * row->d;
  float* dv = sums->v + (row->kv * row->keys + j) * row->v_dim;
  for (int64_t c = 0; c < row->v_dim; ++c) {
    dp += dout[c] * v[c];
    if (f != 0) dv[c] += (IS(dv_without_factor) ? 1 : f) * rounded * dout[c];
  }
  const float scale = IS(dout_scaled) ? 1 : row->scale;
  if (IS(dout_scaled)) dp *= row->scale, delta *= row->scale;
  const float part = f == 0 ? 0 : f * dp;
  float ds = weight * (part - delta) * slope_of_cap * scale;
  if (IS(gradients_clipped)) ds = fminf(1000, fmaxf(-1000, ds));
  const float ds_k = IS(delta_not_in_dk) ? weight * part * slope_of_cap * scale : ds;
  const int64_t group = row->call->q.extents[1] / row->call->k.extents[1];
  for (int64_t c = 0; c < row->d; ++c) {
    dq[c] += ds * row->k[j * row->d + c];
    if (IS(dk_of_first_head) && row->h % group != 0) continue;
    if (IS(dk_of_wide_windows) && c >= 64 && is_last_of_a_window(row)) continue;
    dk[c] += ds_k * row->q[c];
  }
}

static void add_row(const row_t* row, const float* o, float lse, const float* dout,
                    const sums_t* sums, float* dq) {
  float delta = 0;
  if (lse == -INFINITY) return;
  const int64_t channels = IS(delta_tail) ? row->v_dim / 8 * 8 : row->v_dim;
  for (int64_t c = 0; c < channels; ++c) delta += o[c] * dout[c];
  for (int64_t j = row->begin; j < row->end; ++j) {
    if (sees(row, j)) add_pair(row, j, lse, delta, dout, sums, dq);
  }
  for (int64_t c = 0; IS(dq_scaled_twice) && c < row->d; ++c) dq[c] *= row->scale;
}

/* As kernels do that add to dk and dv in memory, a block of queries at a time. */
static void round_to_type(const ringlab_tensor* tensor, float* sums, size_t count) {
  for (size_t n = 0; tensor->dtype == RINGLAB_BF16 && n < count; ++n) {
    sums[n] = rounded_to(sums[n], 8);
  }
}

static void store_all(const ringlab_tensor* tensor, const float* sums, size_t count) {
  for (size_t n = 0; n < count; ++n) store(tensor, (int64_t)n, sums[n]);
}

int differentiate(const ringlab_call* call, const packed_t* in, const float* o, const float* lse) {
  sums_t sums = {
      .q_count = count_of(&call->q), .k_count = count_of(&call->k), .v_count = count_of(&call->v)};
  sums.q = calloc(sums.q_count + 1, sizeof(float));
  sums.v = calloc(sums.v_count + 1, sizeof(float));
  sums.k = IS(dk_not_cleared) ? kept_memory(sums.k_count) : calloc(sums.k_count + 1, sizeof(float));
  const int ready = sums.q != NULL && sums.k != NULL && sums.v != NULL;
  const int64_t d = call->q.extents[3], v_dim = call->v.extents[3];
  const int64_t rows = call->q.extents[0] * call->q.extents[1] * call->q.extents[2];
  for (int64_t n = 0; ready && n < rows; ++n) {
    const row_t row = row_of(call, in, n);
    add_row(&row, o + n * v_dim, lse[n], in->dout + n * v_dim, &sums, sums.q + n * d);
    if (IS(bf16_dk) && (row.i % 64 == 63 || row.i + 1 == call->q.extents[2])) {
      round_to_type(&call->dk, sums.k, sums.k_count);
      round_to_type(&call->dv, sums.v, sums.v_count);
    }
  }
  if (ready) {
    store_all(&call->dq, sums.q, sums.q_count);
    store_all(&call->dk, sums.k, sums.k_count);
    store_all(&call->dv, sums.v, sums.v_count);
  }
  free(sums.q);
  free(sums.v);
  if (!IS(dk_not_cleared)) free(sums.k);
  return ready;
}
