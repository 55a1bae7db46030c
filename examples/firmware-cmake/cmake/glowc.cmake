# ONNX models as libraries of a CMake project. CMake 3.16 or newer.
#
#   include(cmake/glowc.cmake)
#   glowc_add_model(sine models/sine.onnx BOARD linux-aarch64 TEST models/sine_test.npz)
#   target_link_libraries(app PRIVATE sine)      # and #include "sine.h"
#
# glowc_add_model(NAME ONNX BOARD BOARD [CPU CPU] [TEST NPZ] [OPTIONS OPTION...])
#
# makes a static library NAME. Its sources are written at build time, and written again when the .onnx, the
# .npz or the options change, or when glowc itself does. TEST (inputs, one array per input, leading sample axis) adds test vectors:
# #include "NAME_golden.h". CPU makes kernels for that core and compiles them with -mcpu=CPU. OPTIONS go to `glowc compile` as they are. -DGLOWC_EXECUTABLE=... names another glowc.

function(glowc_add_model name onnx)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "BOARD;CPU;TEST" "OPTIONS")
  if(NOT arg_BOARD OR arg_UNPARSED_ARGUMENTS OR arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "glowc_add_model(NAME ONNX BOARD BOARD [CPU CPU] [TEST NPZ] [OPTIONS OPTION...])")
  endif()
  find_program(GLOWC_EXECUTABLE glowc DOC "the ONNX compiler")
  if(NOT GLOWC_EXECUTABLE)
    message(FATAL_ERROR "glowc is not in PATH; give its place with -DGLOWC_EXECUTABLE=/path/to/glowc")
  endif()

  get_filename_component(onnx "${onnx}" ABSOLUTE)
  set(dir "${CMAKE_CURRENT_BINARY_DIR}/models/${name}")
  # A file with the version of glowc, which keeps its time until that changes; a newer program runs CMake again.
  if(IS_ABSOLUTE "${GLOWC_EXECUTABLE}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${GLOWC_EXECUTABLE}")
  endif()
  execute_process(COMMAND "${GLOWC_EXECUTABLE}" --version OUTPUT_VARIABLE version)
  file(GENERATE OUTPUT "${dir}.version" CONTENT "${version}")
  set(inputs "${onnx}" "${dir}.version")
  set(options --board "${arg_BOARD}")
  set(end c) # of the file with the constants; for assembly the project has the language ASM
  if("asm" IN_LIST arg_OPTIONS)
    set(end S)
  elseif("object" IN_LIST arg_OPTIONS)
    set(end o)
  elseif(NOT "--weights" IN_LIST arg_OPTIONS)
    list(APPEND options --weights c)
  endif()
  set(files "${dir}/${name}.c" "${dir}/${name}_weights.${end}" "${dir}/${name}.h" "${dir}/${name}_weights.h")
  if(arg_CPU)
    list(APPEND options --cpu "${arg_CPU}")
  endif()
  if(arg_TEST)
    get_filename_component(test "${arg_TEST}" ABSOLUTE)
    list(APPEND inputs "${test}")
    list(APPEND options --golden "${test}")
    list(APPEND files "${dir}/${name}_golden.c" "${dir}/${name}_golden.h")
  endif()

  # Files whose bytes are equal keep their time, and nothing is compiled again for them: the stamp says when glowc ran.
  add_custom_command(
    OUTPUT "${dir}.stamp"
    BYPRODUCTS ${files}
    COMMAND "${GLOWC_EXECUTABLE}" compile "${onnx}" --name "${name}" -o "${dir}" ${options} ${arg_OPTIONS}
    COMMAND "${CMAKE_COMMAND}" -E touch "${dir}.stamp"
    DEPENDS ${inputs}
    COMMENT "Compiling ${onnx} with glowc"
    VERBATIM)

  add_custom_target(${name}_sources DEPENDS "${dir}.stamp")
  add_library(${name} STATIC ${files})
  add_dependencies(${name} ${name}_sources)
  target_include_directories(${name} PUBLIC "${dir}")
  set_target_properties(${name} PROPERTIES C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS ON)
  target_compile_options(${name} PRIVATE -ffp-contract=off) # results are exact only without contraction
  if(arg_CPU)
    string(REGEX REPLACE "-soft$" "" core "${arg_CPU}")
    target_compile_options(${name} PRIVATE "-mcpu=${core}") # kernels use this core's instructions
  endif()
  target_link_libraries(${name} PUBLIC m)
endfunction()
