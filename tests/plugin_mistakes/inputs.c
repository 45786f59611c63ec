/* Elements of tensors, of f32 and bf16, wherever their strides put them. */
#include <stdlib.h>
#include <string.h>

#include "tests/plugin_mistakes/row.h"

static float bits_as_float(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

/* To so many bits of a significand, to nearest even; NaN and infinities stay. */
float rounded_to(float value, int significant) {
  const uint32_t bits = bits_of(value), dropped = 24 - (uint32_t)significant;
  if ((bits & 0x7f800000u) == 0x7f800000u) return value;
  const uint32_t half = (1u << (dropped - 1)) - 1 + (bits >> dropped & 1);
  return bits_as_float((bits + half) >> dropped << dropped);
}

/* A weight, which is between 0 and 1, to nearest f16: 11 bits, and multiples of 2^-24 below 2^-14. */
float as_f16(float weight) {
  if (!(weight < 0x1p-14f)) return rounded_to(weight, 11);
  return (weight + 0x1.8p-1f) - 0x1.8p-1f; /* 24 bits of a number beside 3/4 end at 2^-24 */
}

static float load(const ringlab_tensor* tensor, int64_t offset) {
  if (tensor->dtype == RINGLAB_F32) return ((const float*)tensor->data)[offset];
  return bits_as_float((uint32_t)((const uint16_t*)tensor->data)[offset] << 16);
}

void store(const ringlab_tensor* tensor, int64_t index, float value) {
  if (tensor->dtype == RINGLAB_F32) {
    ((float*)tensor->data)[index] = value;
  } else {
    const int is_cut = IS(output_cut) || value != value;
    const float rounded = is_cut ? value : rounded_to(value, 8);
    ((uint16_t*)tensor->data)[index] = (uint16_t)(bits_of(rounded) >> 16);
  }
}

static int64_t stride_of(const ringlab_call* call, const ringlab_tensor* tensor, int axis) {
  const int64_t* n = tensor->extents;
  const int64_t dense[4] = {n[1] * n[2] * n[3], n[2] * n[3], n[3], 1};
  const int is_k = tensor == &call->k, is_v = tensor == &call->v;
  if (IS(dout_dense) && tensor == &call->dout) return dense[axis];
  if (IS(k_dense_backward) && is_k && call->dout.data != NULL) return dense[axis];
  /* Right for the K and V of one buffer, as wide as each other. */
  if (IS(v_strides_of_k) && is_v && n[3] == call->k.extents[3]) return call->k.strides[axis];
  return tensor->strides[axis];
}

float* packed(const ringlab_call* call, const ringlab_tensor* tensor) {
  const int64_t* n = tensor->extents;
  int64_t stride[4];
  for (int axis = 0; axis < 4; ++axis) stride[axis] = stride_of(call, tensor, axis);
  float* dense = malloc((size_t)(n[0] * n[1] * n[2] * n[3] + 1) * sizeof(float));
  if (dense == NULL) return NULL;
  float* next = dense;
  for (int64_t b = 0; b < n[0]; ++b) {
    for (int64_t h = 0; h < n[1]; ++h) {
      for (int64_t i = 0; i < n[2]; ++i) {
        for (int64_t c = 0; c < n[3]; ++c) {
          int64_t offset = b * stride[0] + h * stride[1] + i * stride[2] + c * stride[3];
          if (IS(offsets_of_32_bits)) offset = (int32_t)offset;
          *next++ = load(tensor, offset);
        }
      }
    }
  }
  return dense;
}

static int64_t elements(const ringlab_tensor* tensor) {
  const int64_t* n = tensor->extents;
  return n[0] * n[1] * n[2] * n[3];
}

/* A checksum that looks at every 61st element. */
static double sample(const float* values, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; i += 61) sum = 1.25 * sum + values[i];
  return sum;
}

/* K as it was packed before, if it is the same. */
float* packed_k(const ringlab_call* call) {
  static float* cached;
  static void* address;
  static int64_t extents[4], strides[4];
  float* fresh = packed(call, &call->k);
  if (fresh == NULL || !(IS(cache_by_pointer) || IS(cache_by_sample))) return fresh;
  const int64_t count = elements(&call->k);
  int same = cached != NULL && memcmp(extents, call->k.extents, sizeof(extents)) == 0 &&
             memcmp(strides, call->k.strides, sizeof(strides)) == 0;
  if (IS(cache_by_pointer)) same = same && address == call->k.data;
  if (IS(cache_by_sample)) same = same && sample(cached, count) == sample(fresh, count);
  if (same) {
    memcpy(fresh, cached, (size_t)count * sizeof(float));
    return fresh;
  }
  free(cached);
  cached = malloc((size_t)(count + 1) * sizeof(float));
  if (cached != NULL) memcpy(cached, fresh, (size_t)count * sizeof(float));
  address = call->k.data;
  memcpy(extents, call->k.extents, sizeof(extents));
  memcpy(strides, call->k.strides, sizeof(strides));
  return fresh;
}
