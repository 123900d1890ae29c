# Calls of gRPC services: nghttp2 in the program, libprotobuf in a module (perdura-grpc.so) that is
# loaded where such a service is configured. Without them the program is built without gRPC and says
# so (`perdura version --features`); PERDURA_GRPC=ON makes that an error, OFF leaves it out. Sets
# GRPC_OK; to be read before the first target, the module is added behind the program.
set(PERDURA_GRPC AUTO CACHE STRING "AUTO, ON or OFF: calls of gRPC services")
set(GRPC_OK FALSE)
if(NOT PERDURA_GRPC STREQUAL "OFF")
  pkg_check_modules(NGHTTP2 IMPORTED_TARGET libnghttp2>=1.40)
  pkg_check_modules(PROTOBUF IMPORTED_TARGET protobuf>=3.12)
  if(CMAKE_C_COMPILER_ID MATCHES "Clang" AND NOT CMAKE_CXX_COMPILER)
    find_program(CMAKE_CXX_COMPILER clang++) # sanitizers of one kind go with those of another
  endif()
  include(CheckLanguage)
  check_language(CXX)
  if(NGHTTP2_FOUND AND PROTOBUF_FOUND AND CMAKE_CXX_COMPILER)
    enable_language(CXX)
    set(GRPC_OK TRUE)
    add_compile_definitions(PERDURA_GRPC=1)
  elseif(PERDURA_GRPC STREQUAL "ON")
    message(FATAL_ERROR "gRPC needs libnghttp2-dev, libprotobuf-dev and g++")
  else()
    message(WARNING "gRPC is left out: it needs libnghttp2-dev, libprotobuf-dev and g++")
  endif()
endif()

function(grpc_flags target)
  set_target_properties(${target} PROPERTIES CXX_STANDARD 17 CXX_EXTENSIONS ON)
  # Headers of others are read as the system's: -Wconversion is for us.
  get_target_property(folders PkgConfig::PROTOBUF INTERFACE_INCLUDE_DIRECTORIES)
  if(folders)
    target_include_directories(${target} SYSTEM PRIVATE ${folders})
  endif()
  target_include_directories(${target} PRIVATE src)
  target_link_libraries(${target} PRIVATE PkgConfig::PROTOBUF)
endfunction()

function(grpc_module)
  add_library(perdura-grpc MODULE src/worker/services/grpc_codec.cc)
  set_target_properties(perdura-grpc PROPERTIES PREFIX "")
  grpc_flags(perdura-grpc)
  target_link_options(perdura-grpc PRIVATE -Wl,--as-needed)
  add_dependencies(perdura perdura-grpc)
endfunction()
