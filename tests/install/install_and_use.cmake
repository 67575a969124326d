# cmake -D BUILD_FOLDER -D PROJECT_FOLDER -D WORK_FOLDER -D GENERATOR -D CXX_COMPILER -D CXX_FLAGS -D EXPECTED -P this
# Every program of the outside project is run; each must end with 0, and together they must print EXPECTED.
cmake_minimum_required(VERSION 3.25)

function(run_step what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT code EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${what} failed (${code}): ${command}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK_FOLDER})
set(prefix ${WORK_FOLDER}/prefix)
run_step("install" ${CMAKE_COMMAND} --install ${BUILD_FOLDER} --prefix ${prefix})

# The package must not lead back into the source or build tree: it will be used where neither exists.
cmake_path(GET PROJECT_FOLDER PARENT_PATH source_folder)
cmake_path(GET source_folder PARENT_PATH source_folder)
file(GLOB_RECURSE package_files ${prefix}/*.cmake)
if(NOT package_files)
  message(FATAL_ERROR "nothing below ${prefix} is a CMake package file")
endif()
foreach(file IN LISTS package_files)
  file(READ ${file} text)
  string(FIND "${text}" "${source_folder}/" place)
  if(NOT place EQUAL -1)
    message(FATAL_ERROR "${file} names the source tree ${source_folder}")
  endif()
endforeach()

run_step("configure" ${CMAKE_COMMAND} -S ${PROJECT_FOLDER} -B ${WORK_FOLDER}/build -G ${GENERATOR}
         -D CMAKE_CXX_COMPILER=${CXX_COMPILER} -D CMAKE_CXX_FLAGS=${CXX_FLAGS} -D CMAKE_PREFIX_PATH=${prefix}
         -D CMAKE_RUNTIME_OUTPUT_DIRECTORY=${WORK_FOLDER}/bin)
run_step("build" ${CMAKE_COMMAND} --build ${WORK_FOLDER}/build)

file(GLOB programs ${WORK_FOLDER}/bin/*)
if(NOT programs)
  message(FATAL_ERROR "${PROJECT_FOLDER} built no program")
endif()
set(printed "")
foreach(program IN LISTS programs)
  run_step("run" ${CMAKE_COMMAND} -E chdir ${WORK_FOLDER} ${program})
  string(APPEND printed "${output}")
endforeach()
if(NOT printed MATCHES "${EXPECTED}")
  message(FATAL_ERROR "the output does not match \"${EXPECTED}\":\n${printed}")
endif()
message(STATUS "installed, built and run outside the tree:\n${printed}")
