# What makes faults in memory hard to use, in every build that is not for sanitizers (they have their
# own ways and do not go with some of these). tests/cli/test_hardening.py reads it from the binaries.
include(CheckCCompilerFlag)
include(CheckPIESupported)
check_pie_supported()
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

function(harden flag)
  string(MAKE_C_IDENTIFIER "has${flag}" known)
  check_c_compiler_flag(${flag} ${known})
  if(${known})
    add_compile_options(${flag})
  endif()
endfunction()

if(NOT PERDURA_SANITIZE)
  harden(-fstack-protector-strong)
  harden(-fstack-clash-protection)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86|AMD64|i.86")
    harden(-fcf-protection=full) # jumps and returns go where one may
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    harden(-mbranch-protection=standard)
  endif()
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug") # without optimisation it checks nothing, and warns
    add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
  endif()
  add_link_options(-Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
endif()
