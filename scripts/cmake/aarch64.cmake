# Compiles for aarch64 (Arm, 64 bit) with Debian's cross compiler, against the libraries that
# scripts/check_arm puts into the folder arm_root; runs what it compiled in an emulator.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

# Outside of the source tree: CMake refuses to install targets that look for headers in it.
set(arm_root $ENV{RINGLAB_ARM_ROOT})
if(NOT arm_root)
  set(arm_root $ENV{HOME}/.cache/ringlab/arm-root)
endif()
set(CMAKE_SYSROOT ${arm_root})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L ${arm_root})
