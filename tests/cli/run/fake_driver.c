// A libcuda.so.1 for tests of `ringlab doctor`: the devices that FAKE_DRIVER_CAPABILITIES lists.
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

static int capability(int device) {
  const char* text = getenv("FAKE_DRIVER_CAPABILITIES");
  for (int i = 0; text && *text; ++i) {
    char* end = NULL;
    const long value = strtol(text, &end, 10);
    if (i == device) return (int)value;
    text = *end == ',' ? end + 1 : end;
  }
  return 0;
}

/* What CUDA would read of the environment, now that it starts. */
int cuInit(unsigned flags) {
  const char* path = getenv("FAKE_DRIVER_SAW");
  FILE* file = path ? fopen(path, "w") : NULL;
  if (file) {
    const char* queues = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    fprintf(file, "%s", queues ? queues : "nothing");
    fclose(file);
  }
  return (int)flags;
}

int cuDriverGetVersion(int* version) {
  const char* text = getenv("FAKE_DRIVER_VERSION");
  *version = text ? atoi(text) : 0;
  return 0;
}

int cuDeviceGetCount(int* count) {
  for (*count = 0; capability(*count) != 0; ++*count) {
  }
  return 0;
}

int cuDeviceGet(int* handle, int index) {
  *handle = index;
  return 0;
}

int cuDeviceGetName(char* name, int length, int device) {
  snprintf(name, (size_t)length, "Fake GPU %d", device);
  return 0;
}

int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  (void)device;
  *bytes = (size_t)64 << 30;
  return 0;
}

int cuDeviceGetAttribute(int* value, int attribute, int device) {
  enum { clock = 13, multiprocessors = 16, memory_clock = 36, major = 75, minor = 76 };
  switch (attribute) {
    case clock:
      *value = 1980000;
      return 0;
    case multiprocessors:
      *value = 132;
      return 0;
    case memory_clock:
      *value = 2619000;
      return 0;
    case major:
      *value = capability(device) / 10;
      return 0;
    case minor:
      *value = capability(device) % 10;
      return 0;
    default:
      return 1;
  }
}
