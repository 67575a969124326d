# cmake --install: library, public headers, program, and a package for find_package(nrec).
#
# The library is static, so a user's program must link the shared libraries that the rooms use. The package looks for
# these files itself: it needs none of the find modules, pkg-config files or header-only packages of the build, works in
# projects that enable C++ only, and puts no target but nrec::* into a user's project.
include(CMakePackageConfigHelpers)

# What a user of the installed library links for each package of a room: file names for find_library, or nothing where
# the package is headers only. A new package of nrec_room gets a line here.
set(nrec_link_files_PkgConfig::libzip zip)
set(nrec_link_files_PkgConfig::netcdf netcdf)
set(nrec_link_files_BZip2::BZip2 bz2)
set(nrec_link_files_HDF5::HDF5 hdf5 hdf5_serial)
set(nrec_link_files_hdf5::hdf5 hdf5 hdf5_serial)
set(nrec_link_files_fmt::fmt fmt)
set(nrec_link_files_SQLite::SQLite3 sqlite3)
set(nrec_link_files_tomlplusplus::tomlplusplus tomlplusplus)
set(nrec_headers_only Boost::headers Boost::boost Eigen3::Eigen nlohmann_json::nlohmann_json)

get_property(packages GLOBAL PROPERTY NREC_PACKAGES)
list(REMOVE_DUPLICATES packages)
set(NREC_FIND_LIBRARIES "")
foreach(package IN LISTS packages)
  if(DEFINED nrec_link_files_${package})
    list(GET nrec_link_files_${package} 0 name)
    list(JOIN nrec_link_files_${package} " " files)
    string(APPEND NREC_FIND_LIBRARIES "_nrec_find_library(${name} ${files})\n")
    target_link_libraries(nrec INTERFACE $<INSTALL_INTERFACE:$<LINK_ONLY:nrec::${name}>>)
  elseif(NOT package IN_LIST nrec_headers_only AND NOT package STREQUAL "Threads::Threads")
    message(FATAL_ERROR "cmake/Install.cmake: a room uses the package ${package}, but users of the installed library would "
                        "not find it; add its library files to the table in this file, or its name to nrec_headers_only")
  endif()
endforeach()

set(nrec_package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/nrec)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/nrecConfig.cmake.in ${PROJECT_BINARY_DIR}/cmake/nrecConfig.cmake
                              INSTALL_DESTINATION ${nrec_package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cmake/nrecConfigVersion.cmake COMPATIBILITY SameMinorVersion)

install(TARGETS nrec EXPORT nrecTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/nrec DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
        FILES_MATCHING PATTERN "*.h")
install(EXPORT nrecTargets NAMESPACE nrec:: DESTINATION ${nrec_package_folder} COMPONENT development)
install(FILES ${PROJECT_BINARY_DIR}/cmake/nrecConfig.cmake ${PROJECT_BINARY_DIR}/cmake/nrecConfigVersion.cmake
        DESTINATION ${nrec_package_folder} COMPONENT development)
if(TARGET nrec_program)
  install(TARGETS nrec_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
endif()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
