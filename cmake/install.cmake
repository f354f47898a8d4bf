# Install and export. Component dev: headers under include/deltagauge, static libraries, deltagaugeConfig.cmake. Component
# tools: the binary with its man page and completions, configs, docs.
include(CMakePackageConfigHelpers)
get_property(libraries GLOBAL PROPERTY DELTAGAUGE_LIBRARIES)
set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/deltagauge)
install(TARGETS ${libraries} random123 xxhash protozero EXPORT deltagaugeTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
install(EXPORT deltagaugeTargets NAMESPACE deltagauge:: DESTINATION ${config_folder} COMPONENT dev)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/deltagaugeConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/deltagaugeConfig.cmake INSTALL_DESTINATION ${config_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/deltagaugeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/deltagaugeConfig.cmake ${PROJECT_BINARY_DIR}/deltagaugeConfigVersion.cmake
        DESTINATION ${config_folder} COMPONENT dev)
foreach(folder core oracle reference reports kernels validate bench)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/deltagauge COMPONENT dev
          FILES_MATCHING PATTERN "*.h" PATTERN "cli*.h" EXCLUDE)
endforeach()

install(TARGETS deltagauge RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/configs DESTINATION ${CMAKE_INSTALL_DATADIR}/deltagauge COMPONENT tools)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tools)
install(FILES ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tools)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright COMPONENT tools)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libdeltagauge-dev RENAME copyright
        COMPONENT dev)

# The man page and the completions are written by the binary, which a cross build cannot run.
if(NOT CMAKE_CROSSCOMPILING)
  set(manual ${PROJECT_BINARY_DIR}/manual)
  set(files)
  foreach(pair man=man1/deltagauge.1 bash=bash/deltagauge zsh=zsh/_deltagauge fish=fish/deltagauge.fish)
    string(REPLACE "=" ";" pair ${pair})
    list(GET pair 0 form)
    list(GET pair 1 file)
    get_filename_component(folder ${manual}/${file} DIRECTORY)
    file(MAKE_DIRECTORY ${folder})
    add_custom_command(OUTPUT ${manual}/${file} COMMAND deltagauge manual ${form} > ${manual}/${file}
                       DEPENDS deltagauge VERBATIM)
    list(APPEND files ${manual}/${file})
  endforeach()
  add_custom_target(manual ALL DEPENDS ${files})
  install(DIRECTORY ${manual}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT tools)
  install(DIRECTORY ${manual}/bash/ DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT tools)
  install(DIRECTORY ${manual}/zsh/ DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT tools)
  install(DIRECTORY ${manual}/fish/ DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT tools)
endif()
include(packaging)
