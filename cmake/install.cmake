# `cmake --install build --prefix X`: the program, the library with its header and pkg-config file,
# manual pages, completions, documentation and examples. Pages and completions are printed by the
# program itself when it is installed, so that they are always those of this build.
# All users may run the programs, only their owner may read them: then the kernel closes the memory
# of a process to others of its user from its first instruction on, not from main.
set(RUN_ONLY OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_EXECUTE WORLD_EXECUTE)
install(TARGETS perdura RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} PERMISSIONS ${RUN_ONLY})
install(TARGETS perdura-spawn RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR} PERMISSIONS ${RUN_ONLY})
if(GRPC_OK) # beside perdura-spawn; whose user runs perdura has to read it
  install(TARGETS perdura-grpc LIBRARY DESTINATION ${CMAKE_INSTALL_LIBEXECDIR})
endif()
install(TARGETS perdura_shared perdura_static
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  PUBLIC_HEADER DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

# The prefix is found from where the file lies: it is known only at the installation.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(PC_PREFIX ${CMAKE_INSTALL_PREFIX})
else()
  string(REGEX REPLACE "[^/]+" ".." PC_UP "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
  set(PC_PREFIX "\${pcfiledir}/${PC_UP}")
endif()
set(PC_LIBDIR "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
set(PC_INCLUDEDIR "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(PC_LIBDIR ${CMAKE_INSTALL_LIBDIR})
endif()
if(IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  set(PC_INCLUDEDIR ${CMAKE_INSTALL_INCLUDEDIR})
endif()
configure_file(cmake/perdura.pc.in ${GENERATED}/perdura.pc @ONLY)
install(FILES ${GENERATED}/perdura.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} OPTIONAL)
install(DIRECTORY examples/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples USE_SOURCE_PERMISSIONS
  FILES_MATCHING PATTERN "*.c" PATTERN "*.sh" PATTERN "*.py" PATTERN "*.mjs" PATTERN "*.yaml")

find_program(SCDOC scdoc)
if(NOT SCDOC)
  message(STATUS "scdoc is missing: no manual pages will be installed")
endif()
configure_file(cmake/pages.cmake.in ${GENERATED}/pages.cmake @ONLY)
install(SCRIPT ${GENERATED}/pages.cmake)
