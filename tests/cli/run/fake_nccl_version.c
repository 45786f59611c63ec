/* A library that says it is NCCL, of the version that the environment names, and is nothing else. */
#include <stdlib.h>

int ncclGetVersion(int* version) {
  const char* const text = getenv("FAKE_NCCL_VERSION");
  *version = text ? atoi(text) : 22809;
  return 0;
}
