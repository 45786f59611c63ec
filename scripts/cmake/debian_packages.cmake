# cpack -G DEB: `ringlab`, the program, and `libringlab-dev`, what find_package(ringlab) needs.
# scripts/distribute makes and tries both.
set(CPACK_PACKAGE_VENDOR "The ringlab authors")
set(CPACK_PACKAGE_CONTACT "The ringlab authors")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL program development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)

set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "${PROJECT_DESCRIPTION}")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME ringlab)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)

# Packages that ringlabConfig.cmake looks for, and those that the libraries are linked with.
set(development_packages g++ libboost-dev libboost-context-dev libfmt-dev libhwy-dev libmpfr-dev
    librapidcheck-dev libzip-dev nettle-dev nlohmann-json3-dev)
if(RINGLAB_HAVE_MPI)
  list(APPEND development_packages libopenmpi-dev)
endif()
list(JOIN development_packages ", " CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS)
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "Libraries, headers and CMake files of ringlab")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libringlab-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
include(CPack)
