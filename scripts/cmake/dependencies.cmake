# Everything here comes from Debian packages; CUDA is used where it is present.
find_package(Threads REQUIRED)
find_package(Boost 1.74 REQUIRED COMPONENTS context program_options)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(hwy 1.0 REQUIRED)  # vectors, and the choice of their width at run time
find_package(rapidcheck REQUIRED)
find_path(RANDOM123_INCLUDE_DIR Random123/philox.h REQUIRED)  # which pairs the oracle drops
# Extended precision: double-double numbers (headers only), intervals of any precision, integers.
find_path(QD_INCLUDE_DIR qd/dd_real.h REQUIRED)
find_path(MPFI_INCLUDE_DIR mpfi.h REQUIRED)
foreach(name mpfi mpfr gmpxx gmp)
  string(TOUPPER ${name} upper_name)
  find_library(${upper_name}_LIBRARY ${name} REQUIRED)
endforeach()
find_path(NETTLE_INCLUDE_DIR nettle/sha2.h REQUIRED)  # digests of certificates
find_library(NETTLE_LIBRARY nettle REQUIRED)
set(RINGLAB_HAVE_SECCOMP OFF)  # what foreign code may ask of the system
find_path(SECCOMP_INCLUDE_DIR seccomp.h)
find_library(SECCOMP_LIBRARY seccomp)
if(SECCOMP_INCLUDE_DIR AND SECCOMP_LIBRARY)
  set(RINGLAB_HAVE_SECCOMP ON)
endif()
message(STATUS "ringlab: seccomp ${RINGLAB_HAVE_SECCOMP}")
find_path(ZIP_INCLUDE_DIR zip.h REQUIRED)  # .npz; its own CMake files want Debian's tools, too
find_library(ZIP_LIBRARY zip REQUIRED)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
if(RINGLAB_TESTS)
  find_package(GTest REQUIRED)
endif()

set(RINGLAB_HAVE_CUDA OFF)
if(NOT RINGLAB_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    if(NOT CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 80-real 90a-real 100-virtual)
    endif()
    enable_language(CUDA)
    set(CMAKE_CUDA_STANDARD 20)
    find_package(CUDAToolkit REQUIRED)
    set(RINGLAB_HAVE_CUDA ON)
  elseif(RINGLAB_CUDA STREQUAL "ON")
    message(FATAL_ERROR "RINGLAB_CUDA=ON, but no nvcc was found: install the CUDA toolkit, or "
                        "configure with -DRINGLAB_CUDA=OFF.")
  endif()
endif()
message(STATUS "ringlab: CUDA ${RINGLAB_HAVE_CUDA}")

set(RINGLAB_HAVE_NCCL OFF)
if(RINGLAB_HAVE_CUDA AND NOT RINGLAB_NCCL STREQUAL "OFF")
  # The header only: the library is found when the program runs.
  find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  if(NCCL_INCLUDE_DIR)
    set(RINGLAB_HAVE_NCCL ON)
  endif()
endif()
if(RINGLAB_NCCL STREQUAL "ON" AND NOT RINGLAB_HAVE_NCCL)
  message(FATAL_ERROR "RINGLAB_NCCL=ON, but no CUDA or no nccl.h was found: install "
                      "libnccl-dev, or configure with -DRINGLAB_NCCL=OFF.")
endif()
message(STATUS "ringlab: NCCL ${RINGLAB_HAVE_NCCL}")

set(RINGLAB_HAVE_CUDNN OFF)
if(RINGLAB_HAVE_CUDA AND NOT RINGLAB_CUDNN STREQUAL "OFF")
  # Headers only: the library is found when the program runs. scripts/cudnn_frontend fetches those
  # of the frontend.
  find_path(CUDNN_INCLUDE_DIR cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  find_path(CUDNN_FRONTEND_INCLUDE_DIR cudnn_frontend.h
            HINTS ${RINGLAB_CUDNN_FRONTEND} ${PROJECT_BINARY_DIR}/cudnn-frontend/include
                  ${PROJECT_SOURCE_DIR}/build/cudnn-frontend/include ${CUDAToolkit_INCLUDE_DIRS})
  if(CUDNN_INCLUDE_DIR AND CUDNN_FRONTEND_INCLUDE_DIR)
    set(RINGLAB_HAVE_CUDNN ON)
  endif()
endif()
if(RINGLAB_CUDNN STREQUAL "ON" AND NOT RINGLAB_HAVE_CUDNN)
  message(FATAL_ERROR "RINGLAB_CUDNN=ON, but no CUDA, cudnn.h or cudnn_frontend.h was found: "
                      "install libcudnn9-dev-cuda, run scripts/cudnn_frontend or configure with "
                      "-DRINGLAB_CUDNN_FRONTEND=…/include, or with -DRINGLAB_CUDNN=OFF.")
endif()
message(STATUS "ringlab: cuDNN ${RINGLAB_HAVE_CUDNN}")

set(RINGLAB_HAVE_MPI OFF)
if(NOT RINGLAB_MPI STREQUAL "OFF")
  enable_language(C)  # FindMPI tries its C interface with a C compiler
  find_package(MPI COMPONENTS C QUIET)
  if(MPI_C_FOUND)
    set(RINGLAB_HAVE_MPI ON)
  elseif(RINGLAB_MPI STREQUAL "ON")
    message(FATAL_ERROR "RINGLAB_MPI=ON, but no MPI was found: install libopenmpi-dev and "
                        "openmpi-bin, or configure with -DRINGLAB_MPI=OFF.")
  endif()
endif()
message(STATUS "ringlab: MPI ${RINGLAB_HAVE_MPI}")
