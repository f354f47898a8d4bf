# cmake -DSOURCE_DIR=... -DOUTPUT=... -P build_info.cmake: writes the commit and whether tracked files differ from it.
# Runs on every build; configure_file leaves the header alone when nothing changed, so that nothing is rebuilt.
set(git_sha unknown)
set(git_dirty false)
find_program(GIT git)
if(GIT AND EXISTS ${SOURCE_DIR}/.git)
  execute_process(COMMAND ${GIT} rev-parse HEAD WORKING_DIRECTORY ${SOURCE_DIR}
                  OUTPUT_VARIABLE sha RESULT_VARIABLE status OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  execute_process(COMMAND ${GIT} --no-optional-locks status --porcelain --untracked-files=no WORKING_DIRECTORY ${SOURCE_DIR}
                  OUTPUT_VARIABLE changes ERROR_QUIET)
  if(status EQUAL 0)
    set(git_sha ${sha})
  endif()
  if(changes)
    set(git_dirty true)
  endif()
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/build_info.h.in ${OUTPUT} @ONLY)
