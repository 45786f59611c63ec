/* Attention and its gradients in plain loops, f32, that reads inputs in any memory order; with one
 * thing wrong about those orders: which, says the environment variable RINGLAB_TEST_MISTAKE. Without
 * it the plugin is right. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ringlab_plugin.h"

static int is(const char* mistake) {
  const char* wanted = getenv("RINGLAB_TEST_MISTAKE");
  return wanted != NULL && strcmp(wanted, mistake) == 0;
}

typedef struct {
  const float* at;
  int64_t strides[4];
  int int_offsets;
} input_t;

static input_t input_of(const ringlab_tensor* x, int is_taken_for_dense) {
  input_t input = {.at = x->data, .int_offsets = is("int_offsets")};
  int64_t dense = 1;
  for (int axis = 3; axis >= 0; --axis) {
    input.strides[axis] = is_taken_for_dense ? dense : x->strides[axis];
    dense *= x->extents[axis];
  }
  return input;
}

static float get(const input_t* x, int64_t b, int64_t h, int64_t t, int64_t c) {
  const int64_t at[4] = {b, h, t, c};
  if (x->int_offsets) { /* as unsigned, which wraps where int would be undefined */
    uint32_t offset = 0;
    for (int axis = 0; axis < 4; ++axis) offset += (uint32_t)at[axis] * (uint32_t)x->strides[axis];
    return x->at[(int32_t)offset];
  }
  int64_t offset = 0;
  for (int axis = 0; axis < 4; ++axis) offset += at[axis] * x->strides[axis];
  return x->at[offset];
}

/* dout of an earlier call, where address, size and first number are those of this one. */
static void take_kept(const ringlab_tensor* dout, input_t* input) {
  static const void* address;
  static float* kept;
  static int64_t kept_size;
  int64_t size = 1;
  for (int axis = 0; axis < 4; ++axis) size *= dout->extents[axis];
  for (int64_t n = size, axis = 0; axis < 4; ++axis) { /* where it is dense */
    n /= dout->extents[axis] > 0 ? dout->extents[axis] : 1;
    if (dout->strides[axis] != n) return;
  }
  const float* now = dout->data;
  if (size > 0 && address == now && kept_size == size && kept[0] == now[0]) {
    input->at = kept;
    return;
  }
  free(kept);
  kept = malloc((size_t)(size + 1) * sizeof(float));
  memcpy(kept, now, (size_t)size * sizeof(float));
  kept_size = size;
  address = now;
}

typedef struct {
  input_t q, k, v, dout;
  float *weights, *shares; /* of one row, by key */
  double* dk;              /* sums over rows, of all keys */
  double* dv;
  int64_t keys, d, dv_channels;
} pass_t;

/* The weights of one row; returns its lse. */
static float weigh(pass_t* p, const ringlab_call* call, int64_t b, int64_t h, int64_t kv,
                   int64_t i) {
  const int64_t begin = call->mask.visible_begin[i], end = call->mask.visible_end[i];
  float top = -INFINITY, sum = 0;
  for (int64_t j = begin; j < end; ++j) {
    float dot = 0;
    for (int64_t c = 0; c < p->d; ++c) dot += get(&p->q, b, h, i, c) * get(&p->k, b, kv, j, c);
    p->weights[j] = (float)call->scale * dot;
    top = fmaxf(top, p->weights[j]);
  }
  for (int64_t j = begin; j < end; ++j) sum += p->weights[j] = expf(p->weights[j] - top);
  for (int64_t j = begin; j < end; ++j) p->shares[j] = p->weights[j] / sum;
  return begin == end ? -INFINITY : top + logf(sum);
}

static void row_gradients(pass_t* p, const ringlab_call* call, int64_t b, int64_t h, int64_t kv,
                          int64_t i, float* dq) {
  const int64_t begin = call->mask.visible_begin[i], end = call->mask.visible_end[i];
  for (int64_t c = 0; c < p->d; ++c) dq[c] = 0;
  float delta = 0;
  for (int64_t j = begin; j < end; ++j) {
    float dp = 0;
    for (int64_t c = 0; c < p->dv_channels; ++c) {
      dp += get(&p->dout, b, h, i, c) * get(&p->v, b, kv, j, c);
    }
    p->weights[j] = dp;
    delta += p->shares[j] * dp;
  }
  for (int64_t j = begin; j < end; ++j) {
    const float ds = (float)call->scale * p->shares[j] * (p->weights[j] - delta);
    for (int64_t c = 0; c < p->d; ++c) {
      dq[c] += ds * get(&p->k, b, kv, j, c);
      p->dk[j * p->d + c] += (double)ds * (double)get(&p->q, b, h, i, c);
    }
    for (int64_t c = 0; c < p->dv_channels; ++c) {
      p->dv[j * p->dv_channels + c] += (double)p->shares[j] * (double)get(&p->dout, b, h, i, c);
    }
  }
}

static void attend(pass_t* p, const ringlab_call* call, int64_t b, int64_t h) {
  const int64_t heads = call->q.extents[1], kv = h / (heads / call->k.extents[1]);
  for (int64_t i = 0; i < call->q.extents[2]; ++i) {
    const int64_t row = (b * heads + h) * call->q.extents[2] + i;
    float* o = (float*)call->o.data + row * p->dv_channels;
    ((float*)call->lse.data)[row] = weigh(p, call, b, h, kv, i);
    for (int64_t c = 0; c < p->dv_channels; ++c) {
      o[c] = 0;
      for (int64_t j = call->mask.visible_begin[i]; j < call->mask.visible_end[i]; ++j) {
        o[c] += p->shares[j] * get(&p->v, b, kv, j, c);
      }
    }
    if (call->dout.data == NULL) continue;
    row_gradients(p, call, b, h, kv, i, (float*)call->dq.data + row * p->d);
  }
}

/* All query heads of one K/V head, and the gradients of that. */
static void attend_group(pass_t* p, const ringlab_call* call, int64_t b, int64_t kv) {
  const int64_t kv_heads = call->k.extents[1], group = call->q.extents[1] / kv_heads;
  memset(p->dk, 0, (size_t)(p->keys * p->d) * sizeof(double));
  memset(p->dv, 0, (size_t)(p->keys * p->dv_channels) * sizeof(double));
  for (int64_t h = kv * group; h < (kv + 1) * group; ++h) attend(p, call, b, h);
  if (call->dout.data == NULL) return;
  const int64_t first = (b * kv_heads + kv) * p->keys;
  for (int64_t n = 0; n < p->keys * p->d; ++n) {
    ((float*)call->dk.data)[first * p->d + n] = (float)p->dk[n];
  }
  for (int64_t n = 0; n < p->keys * p->dv_channels; ++n) {
    ((float*)call->dv.data)[first * p->dv_channels + n] = (float)p->dv[n];
  }
}

static int32_t run(const ringlab_call* call, void* context) {
  (void)context;
  const int backwards = call->dout.data != NULL;
  const size_t keys = (size_t)call->k.extents[2] + 1;
  pass_t p = {.q = input_of(&call->q, 0),
              .k = input_of(&call->k, backwards && is("k_dense_backwards")),
              .v = input_of(&call->v, backwards && is("v_dense_backwards")),
              .keys = call->k.extents[2],
              .d = call->q.extents[3],
              .dv_channels = call->v.extents[3]};
  if (backwards) p.dout = input_of(&call->dout, is("dout_dense"));
  if (backwards && is("keeps_dout")) take_kept(&call->dout, &p.dout);
  p.weights = malloc(keys * sizeof(float));
  p.shares = malloc(keys * sizeof(float));
  p.dk = malloc(keys * (size_t)p.d * sizeof(double));
  p.dv = malloc(keys * (size_t)p.dv_channels * sizeof(double));
  for (int64_t b = 0; b < call->q.extents[0]; ++b) {
    for (int64_t kv = 0; kv < call->k.extents[1]; ++kv) attend_group(&p, call, b, kv);
  }
  free(p.weights);
  free(p.shares);
  free(p.dk);
  free(p.dv);
  return RINGLAB_OK;
}

static const ringlab_plugin plugin = {
    .struct_size = sizeof(ringlab_plugin),
    .version = RINGLAB_PLUGIN_VERSION,
    .name = "strided",
    .title = "attention and its gradients in plain loops over views",
    .can = {.dtypes = RINGLAB_DTYPE_BIT(RINGLAB_F32),
            .masks = RINGLAB_MASK_INTERVALS,
            .lse = 1,
            .backward = 1,
            .grouped_heads = 1,
            .rectangular = 1,
            .other_v_dim = 1,
            .no_tokens = 1,
            .empty_rows = 1,
            .any_scale = 1,
            .strided_inputs = 1,
            .deterministic = 1,
            .masked_may_be_nan = 1,
            .sums_keys_in_order = 1,
            .same_bits_per_row = 1},
    .numerics = {[RINGLAB_F32] = {.keys_per_rescale = INT64_MAX, .exp_error = 0x1p-21}},
    .run = run};

RINGLAB_PLUGIN_EXPORT const ringlab_plugin* ringlab_plugin_v1(void) { return &plugin; }
