# The only wrappers around add_library, add_executable and add_test.
#   deltagauge_library(NAME SOURCES ... LINK ...)      target deltagauge_NAME, alias deltagauge::NAME, static
#   deltagauge_tool(NAME SOURCES ... LINK ...)         executable NAME in the top of the build tree
#   deltagauge_test(PATH LINK ... LABELS ...)          GoogleTest executable from PATH.cc (or .cu), one CTest a TEST
#   deltagauge_benchmark(PATH LINK ...)                Google Benchmark executable from PATH.cc
# g++ 12 warns about std::string joins that are right (-Wrestrict, GCC bug 105651).
set(DELTAGAUGE_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wno-restrict)

function(deltagauge_common target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                              $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/deltagauge>)
  # No contraction: the CPU half must round where the source says, on every machine.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${DELTAGAUGE_WARNINGS} -ffp-contract=off>)
  if(DELTAGAUGE_SANITIZE)
    target_compile_options(
      ${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${DELTAGAUGE_SANITIZE} -fno-omit-frame-pointer -g>)
    target_link_options(${target} PUBLIC -fsanitize=${DELTAGAUGE_SANITIZE})
  endif()
endfunction()

function(deltagauge_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK;PRIVATE_LINK")
  add_library(deltagauge_${name} STATIC ${arg_SOURCES})
  add_library(deltagauge::${name} ALIAS deltagauge_${name})
  set_target_properties(deltagauge_${name} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON)
  deltagauge_common(deltagauge_${name})
  target_link_libraries(deltagauge_${name} PUBLIC ${arg_LINK} PRIVATE ${arg_PRIVATE_LINK})
  set_property(GLOBAL APPEND PROPERTY DELTAGAUGE_LIBRARIES deltagauge_${name})
endfunction()

function(deltagauge_tool name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  add_executable(${name} ${arg_SOURCES})
  deltagauge_common(${name})
  target_link_libraries(${name} PRIVATE ${arg_LINK})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
endfunction()

function(deltagauge_test path)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINK;LABELS;DEFINES")
  if(NOT DELTAGAUGE_TESTS)
    return()
  endif()
  if(NOT arg_LABELS)
    set(arg_LABELS cpu)
  endif()
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE folder)
  string(REPLACE "/" "." target ${folder}/${path})
  set(source ${path}.cc)
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${path}.cu)
    set(source ${path}.cu)
  endif()
  add_executable(${target} ${source})
  deltagauge_common(${target})
  target_link_libraries(${target} PRIVATE ${arg_LINK} GTest::gtest GTest::gtest_main)
  target_compile_definitions(${target} PRIVATE DELTAGAUGE_SOURCE_DIR="${PROJECT_SOURCE_DIR}" ${arg_DEFINES})
  gtest_discover_tests(${target} TEST_PREFIX ${folder}/ DISCOVERY_MODE PRE_TEST WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                       PROPERTIES LABELS "${arg_LABELS}" TIMEOUT 600)
endfunction()

function(deltagauge_benchmark path)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINK")
  if(NOT DELTAGAUGE_BENCHMARKS)
    return()
  endif()
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE folder)
  string(REPLACE "/" "." target ${folder}/${path})
  add_executable(${target} ${path}.cc)
  deltagauge_common(${target})
  target_link_libraries(${target} PRIVATE ${arg_LINK} benchmark::benchmark benchmark::benchmark_main)
endfunction()
