# Packages: cpack -G "DEB;TGZ" in a build folder. The .deb files are deltagauge (component tools) and libdeltagauge-dev
# (component dev); the .tar.gz holds both. scripts/check_package tries them.
set(CPACK_PACKAGE_NAME deltagauge)
set(CPACK_PACKAGE_VENDOR Deltagauge)
set(CPACK_PACKAGE_CONTACT "The Deltagauge authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_COMPONENTS_ALL tools dev)
set(CPACK_STRIP_FILES TRUE)
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_FILE_NAME
    ${CPACK_PACKAGE_NAME}-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
if(DELTAGAUGE_HAVE_CUDA)
  string(REPLACE ";" ", " half "With CUDA kernels for ${DELTAGAUGE_CUDA_ARCHS}.")
else()
  set(half "The CPU half: oracle, emulator, judge and reports, without CUDA kernels.")
endif()

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_COMPONENT_TOOLS_DESCRIPTION
    "Judges and times kernels of the delta-rule family of linear attention\n ${half}")
set(CPACK_COMPONENT_DEV_DESCRIPTION "Headers and static libraries of Deltagauge\n For find_package(deltagauge). ${half}")
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME deltagauge)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SUGGESTS "bash-completion, man-db")
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libdeltagauge-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
# What deltagaugeConfig.cmake looks for.
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libboost-dev, libeigen3-dev, libfmt-dev, libpugixml-dev, nlohmann-json3-dev")
find_program(DELTAGAUGE_SHLIBDEPS dpkg-shlibdeps)
find_program(DELTAGAUGE_FILE file)
mark_as_advanced(DELTAGAUGE_SHLIBDEPS DELTAGAUGE_FILE)
if(DELTAGAUGE_SHLIBDEPS AND DELTAGAUGE_FILE)  # of dpkg-dev and file; without them the package names no dependencies
  set(CPACK_DEBIAN_TOOLS_PACKAGE_SHLIBDEPS ON)
endif()
include(CPack)
