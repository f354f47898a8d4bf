# Install and export: headers under include/deltagauge, static libraries, deltagaugeConfig.cmake, the binary.
include(CMakePackageConfigHelpers)
get_property(libraries GLOBAL PROPERTY DELTAGAUGE_LIBRARIES)
install(TARGETS ${libraries} random123 EXPORT deltagaugeTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT deltagaugeTargets NAMESPACE deltagauge:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/deltagauge)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/deltagaugeConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/deltagaugeConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/deltagauge)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/deltagaugeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/deltagaugeConfig.cmake ${PROJECT_BINARY_DIR}/deltagaugeConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/deltagauge)
foreach(folder core oracle reference reports kernels validate)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/deltagauge
          FILES_MATCHING PATTERN "*.h")
endforeach()
install(TARGETS deltagauge RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/configs DESTINATION ${CMAKE_INSTALL_DATADIR}/deltagauge)
