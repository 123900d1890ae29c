# The dashboard: npm brings what it is made of (dashboard/package-lock.json, checked by hash),
# dashboard/build.mjs makes the files that are embedded. Without Node.js, or without a way to the
# packages, the program is built without it and says so at `/`; PERDURA_DASHBOARD=ON makes that an
# error, OFF leaves it out. Sets DASHBOARD_FILES (a folder) and DASHBOARD_STAMP, or nothing.
set(PERDURA_DASHBOARD AUTO CACHE STRING "AUTO, ON or OFF: put the web dashboard into the program")
find_program(NODE node)
find_program(NPM npm)
set(DASHBOARD_PACKAGES ${CMAKE_BINARY_DIR}/dashboard)

function(dashboard_left_out why)
  if(PERDURA_DASHBOARD STREQUAL "ON")
    message(FATAL_ERROR "the dashboard cannot be built: ${why}")
  endif()
  message(WARNING "the dashboard is left out: ${why}")
endfunction()

# npm ci in a folder of the build, again only when the lock file has changed.
function(npm_packages folder source ok)
  set(${ok} TRUE PARENT_SCOPE)
  file(SHA256 ${source}/package-lock.json hash)
  set(stamp ${folder}/installed-${hash})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source}/package-lock.json)
  if(EXISTS ${stamp})
    return()
  endif()
  file(MAKE_DIRECTORY ${folder})
  configure_file(${source}/package.json ${folder}/package.json COPYONLY)
  configure_file(${source}/package-lock.json ${folder}/package-lock.json COPYONLY)
  execute_process(COMMAND ${NPM} ci --ignore-scripts --no-audit --no-fund --loglevel=error
    WORKING_DIRECTORY ${folder} RESULT_VARIABLE failed OUTPUT_QUIET)
  if(failed)
    set(${ok} FALSE PARENT_SCOPE)
  else()
    file(WRITE ${stamp} "")
  endif()
endfunction()

if(NOT PERDURA_DASHBOARD STREQUAL "OFF")
  if(NOT NODE OR NOT NPM)
    dashboard_left_out("node and npm are missing (apt-get install nodejs npm)")
  else()
    npm_packages(${DASHBOARD_PACKAGES} ${CMAKE_SOURCE_DIR}/dashboard DASHBOARD_OK)
    if(NOT DASHBOARD_OK)
      dashboard_left_out("npm could not bring its packages; see above")
    endif()
  endif()
endif()
if(DASHBOARD_OK)
  file(GLOB_RECURSE DASHBOARD_SOURCES CONFIGURE_DEPENDS dashboard/src/*)
  set(DASHBOARD_FILES ${GENERATED}/dashboard)
  set(DASHBOARD_STAMP ${GENERATED}/dashboard.stamp)
  add_custom_command(OUTPUT ${DASHBOARD_STAMP}
    COMMAND ${NODE} ${CMAKE_SOURCE_DIR}/dashboard/build.mjs ${DASHBOARD_PACKAGES}/node_modules
      ${DASHBOARD_FILES}
    COMMAND ${CMAKE_COMMAND} -E touch ${DASHBOARD_STAMP}
    DEPENDS ${DASHBOARD_SOURCES} ${CMAKE_SOURCE_DIR}/dashboard/build.mjs
      ${CMAKE_SOURCE_DIR}/dashboard/package-lock.json
      ${CMAKE_SOURCE_DIR}/src/server/assets/openapi.json VERBATIM)
endif()
