// Marks functions that compile for the host and, under nvcc, for the device too.
#pragma once

#ifdef __CUDACC__
#define RINGLAB_HD __host__ __device__
#else
#define RINGLAB_HD
#endif
