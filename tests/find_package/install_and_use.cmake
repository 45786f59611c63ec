# Installs the build tree to a prefix inside it, then builds and runs the example against that.
set(prefix ${build}/find_package/prefix)
set(example ${build}/find_package/build)
file(REMOVE_RECURSE ${build}/find_package)

function(step)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

step(${CMAKE_COMMAND} --install ${build} --prefix ${prefix} --config "${config}")

# What is installed is what a user of the libraries includes; 61 without devices.
file(GLOB_RECURSE headers ${prefix}/include/*.h)
list(LENGTH headers count)
if(count GREATER 63)
  message(FATAL_ERROR "${count} headers are installed, 63 at most should be")
endif()

step(${CMAKE_COMMAND} -S ${source} -B ${example} -G ${generator}
     -D CMAKE_CXX_COMPILER=${compiler} -D "CMAKE_CXX_FLAGS=${flags}"
     -D CMAKE_BUILD_TYPE=${config} -D CMAKE_PREFIX_PATH=${prefix})
step(${CMAKE_COMMAND} --build ${example} --config "${config}")
find_program(program uses_ringlab PATHS ${example} ${example}/${config} NO_DEFAULT_PATH REQUIRED)
step(${program} ${build}/find_package/out.safetensors)
find_program(judge judges_its_own PATHS ${example} ${example}/${config} NO_DEFAULT_PATH REQUIRED)
step(${judge})
step(${prefix}/bin/ringlab --help)
