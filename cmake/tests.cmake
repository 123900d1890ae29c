# Every test of `make test`, for CTest. Unit and store tests are cmocka programs, one per file;
# fuzz corpora are replayed; the rest is Python (standard library only) against the real binary.
enable_testing()
find_library(CMOCKA_LIBRARY cmocka)
find_program(PYTHON3 NAMES /usr/bin/python3 python3)
if(NOT CMOCKA_LIBRARY)
  message(STATUS "cmocka is missing: no C tests will be built")
  return()
endif()

add_library(perdura_everything STATIC $<TARGET_OBJECTS:perdura_core_objects>
  $<TARGET_OBJECTS:perdura_api_objects> $<TARGET_OBJECTS:perdura_app_objects>)
target_include_directories(perdura_everything PUBLIC src include)
target_link_libraries(perdura_everything PUBLIC PkgConfig::SQLITE PkgConfig::PQ PkgConfig::EVENT
  PkgConfig::SSL PkgConfig::CRYPTO PkgConfig::CURL PkgConfig::YAML PkgConfig::ZSTD PkgConfig::PCRE2
  PkgConfig::SODIUM
  Threads::Threads m)
if(RABBITMQ_OK)
  target_link_libraries(perdura_everything PUBLIC PkgConfig::RABBITMQ)
endif()
if(GRPC_OK)
  target_link_libraries(perdura_everything PUBLIC PkgConfig::NGHTTP2 ${CMAKE_DL_LIBS})
endif()

file(GLOB_RECURSE C_TESTS CONFIGURE_DEPENDS tests/unit/*_test.c)
file(GLOB MODULE_TESTS CONFIGURE_DEPENDS tests/engine/*_test.c tests/lib/*_test.c tests/net/*_test.c
  tests/outbound/*_test.c tests/store/*_test.c tests/worker/*_test.c)
list(APPEND C_TESTS ${MODULE_TESTS})
# Several times what any test takes on a quiet machine: these bounds only end what hangs.
set(C_TEST_SECONDS 600)
set(LONG_TEST_SECONDS 900)
if(PERDURA_SANITIZE)
  set(C_TEST_SECONDS 1800)
  set(LONG_TEST_SECONDS 1800)
endif()
if(PERDURA_SANITIZE MATCHES address AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
  # It stands before malloc, which gcc's sanitizer calls before it is there itself; clang's is not
  # a library of its own and does not.
  list(FILTER C_TESTS EXCLUDE REGEX "memory_faults_test")
endif()
file(GLOB STORE_PARTS CONFIGURE_DEPENDS tests/store/*.c)
list(FILTER STORE_PARTS EXCLUDE REGEX "_test\\.c$")
foreach(source ${C_TESTS})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  if(source MATCHES "tests/store/")
    target_sources(${name} PRIVATE ${STORE_PARTS})
  endif()
  target_include_directories(${name} PRIVATE tests tests/engine tests/lib tests/net tests/store
    tests/worker tests/unit/calendar)
  target_link_libraries(${name} PRIVATE perdura_everything ${CMOCKA_LIBRARY})
  add_dependencies(${name} perdura-spawn)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${C_TEST_SECONDS})
endforeach()
# What is due is found without walking through what was missed: the test counts the searches.
target_link_options(plan_test PRIVATE -Wl,--wrap=wall_next)
# How old logs are goes by the machine's clock, which these tests move.
foreach(name engine_logs_test engine_log_retention_test)
  target_link_options(${name} PRIVATE -Wl,--wrap=clock_wall_us)
endforeach()

# How runs end where no cgroup can be made. Who may not unmount has none in the tests above either.
add_test(NAME process_stop_without_cgroups COMMAND sh -c
  "unshare -m true 2> /dev/null || exit 77; exec unshare -m sh -c 'umount -a -t cgroup2; exec $<TARGET_FILE:process_stop_test>'")
set_tests_properties(process_stop_without_cgroups PROPERTIES TIMEOUT ${C_TEST_SECONDS} SKIP_RETURN_CODE 77)

file(GLOB FUZZERS CONFIGURE_DEPENDS tests/fuzz/*_fuzz.c)
if(NOT GRPC_OK)
  list(FILTER FUZZERS EXCLUDE REGEX "grpc_fuzz")
endif()
foreach(source ${FUZZERS})
  get_filename_component(name ${source} NAME_WE)
  string(REPLACE "_fuzz" "" corpus ${name})
  if(PERDURA_FUZZ)
    add_executable(${name} ${source})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer,address,undefined)
    target_link_libraries(${name} PRIVATE perdura_everything)
  endif()
  add_executable(${name}_replay ${source} tests/fuzz/replay_main.c)
  target_link_libraries(${name}_replay PRIVATE perdura_everything)
  add_test(NAME ${name}_replay
    COMMAND ${name}_replay ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${corpus})
  set_tests_properties(${name}_replay PROPERTIES TIMEOUT ${C_TEST_SECONDS})
endforeach()
if(GRPC_OK) # what is a module elsewhere is part of these
  foreach(name grpc_fuzz grpc_fuzz_replay)
    if(TARGET ${name})
      target_sources(${name} PRIVATE src/worker/services/grpc_codec.cc)
      grpc_flags(${name})
    endif()
  endforeach()
endif()

# The calendar against brute force and against calendars of others: a sample here, all of it by
# `make calendar-proof`.
add_executable(calendar_probe tests/calendar/probe.c)
add_executable(calendar_proof tests/calendar/proof.c tests/calendar/naive_cron.c
  tests/calendar/proof_expressions.c tests/calendar/proof_zone.c)
add_executable(calendar_proof_seconds tests/calendar/proof_seconds.c tests/calendar/naive_cron.c
  tests/calendar/proof_zone.c)
foreach(name calendar_probe calendar_proof calendar_proof_seconds)
  target_include_directories(${name} PRIVATE tests/calendar)
  target_link_libraries(${name} PRIVATE perdura_everything)
endforeach()
add_test(NAME calendar_proof_sample COMMAND calendar_proof --around --from 2010 --until 2040
  America/New_York Pacific/Apia Australia/Lord_Howe Africa/Cairo Africa/Casablanca
  America/Sao_Paulo Antarctica/Troll)
add_test(NAME calendar_seconds_sample COMMAND calendar_proof_seconds --from 2009 --until 2014
  America/New_York Pacific/Apia Australia/Lord_Howe Africa/Cairo Antarctica/Troll)
set_tests_properties(calendar_proof_sample calendar_seconds_sample PROPERTIES
  TIMEOUT ${C_TEST_SECONDS})

# A PostgreSQL for the tests that need one, as long as they run.
set(POSTGRES_FILE ${CMAKE_BINARY_DIR}/postgres.url)
add_test(NAME postgres_start COMMAND ${PYTHON3} ${CMAKE_SOURCE_DIR}/tests/postgres/server.py start
  ${POSTGRES_FILE})
add_test(NAME postgres_stop COMMAND ${PYTHON3} ${CMAKE_SOURCE_DIR}/tests/postgres/server.py stop
  ${POSTGRES_FILE})
set_tests_properties(postgres_start PROPERTIES FIXTURES_SETUP postgres TIMEOUT 150)
set_tests_properties(postgres_stop PROPERTIES FIXTURES_CLEANUP postgres TIMEOUT 150)
set_tests_properties(conformance_postgres_test postgres_verify_test postgres_months_test postgres_conn_test
  PROPERTIES FIXTURES_REQUIRED postgres TIMEOUT ${LONG_TEST_SECONDS}
  ENVIRONMENT "PERDURA_TEST_POSTGRES_FILE=${POSTGRES_FILE}")

# What the queue promises holds on both stores: the same tests, each in a schema of its own.
file(GLOB ENGINE_TESTS CONFIGURE_DEPENDS tests/engine/engine_*_test.c)
foreach(source ${ENGINE_TESTS})
  get_filename_component(name ${source} NAME_WE)
  add_test(NAME ${name}_on_postgres COMMAND ${name})
  set_tests_properties(${name}_on_postgres PROPERTIES FIXTURES_REQUIRED postgres
    TIMEOUT ${LONG_TEST_SECONDS}
    ENVIRONMENT "PERDURA_TEST_STORE=postgres;PERDURA_TEST_POSTGRES_FILE=${POSTGRES_FILE}")
endforeach()

add_test(NAME tidy COMMAND ${PYTHON3} ${CMAKE_SOURCE_DIR}/tools/tidy.py ${CMAKE_SOURCE_DIR})
# The page that explains the codes tests name must name the tests.
add_test(NAME requirements COMMAND ${PYTHON3} ${CMAKE_SOURCE_DIR}/tools/requirements.py
  ${CMAKE_SOURCE_DIR}/docs/requirements.md --check)
# The protocol itself, before any code: every interleaving within the bounds (model/README.md).
add_test(NAME model COMMAND ${PYTHON3} ${CMAKE_SOURCE_DIR}/model/check.py)
set_tests_properties(model PROPERTIES TIMEOUT ${LONG_TEST_SECONDS} SKIP_RETURN_CODE 77)
file(GLOB PYTHON_TESTS CONFIGURE_DEPENDS tests/api/test_*.py tests/cli/test_*.py
  tests/crash/test_*.py tests/postgres/test_*.py tests/calendar/test_*.py)
foreach(source ${PYTHON_TESTS})
  get_filename_component(name ${source} NAME_WE)
  get_filename_component(folder ${source} DIRECTORY)
  get_filename_component(kind ${folder} NAME)
  add_test(NAME ${kind}_${name} COMMAND ${PYTHON3} -m unittest ${name}
    WORKING_DIRECTORY ${folder})
  set_tests_properties(${kind}_${name} PROPERTIES TIMEOUT ${LONG_TEST_SECONDS}
    ENVIRONMENT "PERDURA_BUILD=${CMAKE_BINARY_DIR};PYTHONPATH=${CMAKE_SOURCE_DIR}/tests/api;PYTHONDONTWRITEBYTECODE=1")
endforeach()

# Clients in TypeScript made from openapi.json by generators that come from npm. Of one build: the document is the same
# in all of them.
find_program(NPM npm)
if(NODE AND NPM AND CMAKE_C_COMPILER_ID STREQUAL "GNU" AND NOT PERDURA_SANITIZE AND NOT PERDURA_FAULTS)
  add_test(NAME clients_packages COMMAND sh ${CMAKE_SOURCE_DIR}/tests/browser/packages.sh
    ${CMAKE_BINARY_DIR}/clients ${CMAKE_SOURCE_DIR}/tests/clients)
  set_tests_properties(clients_packages PROPERTIES FIXTURES_SETUP clients TIMEOUT ${LONG_TEST_SECONDS})
  add_test(NAME clients_test_clients COMMAND ${PYTHON3} -m unittest test_clients
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}/tests/clients)
  set_tests_properties(clients_test_clients PROPERTIES FIXTURES_REQUIRED clients TIMEOUT ${LONG_TEST_SECONDS}
    ENVIRONMENT "PERDURA_BUILD=${CMAKE_BINARY_DIR};PERDURA_CLIENTS=${CMAKE_BINARY_DIR}/clients;PYTHONPATH=${CMAKE_SOURCE_DIR}/tests/api;PYTHONDONTWRITEBYTECODE=1")
  # The example in JavaScript of docs/sql.md, too.
  set_tests_properties(postgres_test_sql_docs PROPERTIES FIXTURES_REQUIRED clients)
  set_property(TEST postgres_test_sql_docs APPEND PROPERTY ENVIRONMENT "PERDURA_CLIENTS=${CMAKE_BINARY_DIR}/clients")
endif()

# gRPC services by the usual library of another language, from npm, and hostile ones frame by frame.
find_program(PROTOC protoc)
if(GRPC_OK AND NODE AND NPM AND PROTOC)
  add_test(NAME grpc_packages COMMAND sh ${CMAKE_SOURCE_DIR}/tests/browser/packages.sh
    ${CMAKE_BINARY_DIR}/grpc_packages ${CMAKE_SOURCE_DIR}/tests/grpc)
  set_tests_properties(grpc_packages PROPERTIES FIXTURES_SETUP grpc TIMEOUT ${LONG_TEST_SECONDS})
  file(GLOB GRPC_TESTS CONFIGURE_DEPENDS tests/grpc/test_*.py)
  foreach(source ${GRPC_TESTS})
    get_filename_component(name ${source} NAME_WE)
    add_test(NAME grpc_${name} COMMAND ${PYTHON3} -m unittest ${name}
      WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}/tests/grpc)
    set_tests_properties(grpc_${name} PROPERTIES FIXTURES_REQUIRED grpc TIMEOUT ${LONG_TEST_SECONDS}
      ENVIRONMENT "PERDURA_BUILD=${CMAKE_BINARY_DIR};PERDURA_GRPC_PACKAGES=${CMAKE_BINARY_DIR}/grpc_packages;PYTHONPATH=${CMAKE_SOURCE_DIR}/tests/api;PYTHONDONTWRITEBYTECODE=1")
  endforeach()
else()
  message(STATUS "no gRPC, Node.js or protoc: no tests of gRPC services")
endif()

# RabbitMQ: a broker of Debian's, started and ended by each file of tests.
find_program(RABBITMQ rabbitmq-server PATHS /usr/lib/rabbitmq/bin)
if(RABBITMQ_OK AND RABBITMQ)
  set(RABBITMQ_PACKAGES "")
  if(NODE AND NPM)
    set(RABBITMQ_PACKAGES ${CMAKE_BINARY_DIR}/rabbitmq_packages)
    add_test(NAME rabbitmq_packages COMMAND sh ${CMAKE_SOURCE_DIR}/tests/browser/packages.sh
      ${RABBITMQ_PACKAGES} ${CMAKE_SOURCE_DIR}/tests/rabbitmq)
    set_tests_properties(rabbitmq_packages PROPERTIES FIXTURES_SETUP rabbitmq TIMEOUT ${LONG_TEST_SECONDS})
  endif()
  file(GLOB RABBITMQ_TESTS CONFIGURE_DEPENDS tests/rabbitmq/test_*.py)
  foreach(source ${RABBITMQ_TESTS})
    get_filename_component(name ${source} NAME_WE)
    add_test(NAME rabbitmq_${name} COMMAND ${PYTHON3} -m unittest ${name}
      WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}/tests/rabbitmq)
    set_tests_properties(rabbitmq_${name} PROPERTIES FIXTURES_REQUIRED rabbitmq TIMEOUT ${LONG_TEST_SECONDS}
      ENVIRONMENT "PERDURA_BUILD=${CMAKE_BINARY_DIR};PERDURA_RABBITMQ_PACKAGES=${RABBITMQ_PACKAGES};PYTHONPATH=${CMAKE_SOURCE_DIR}/tests/api;PYTHONDONTWRITEBYTECODE=1")
  endforeach()
else()
  message(STATUS "no librabbitmq or no rabbitmq-server: no tests of brokers")
endif()

# The dashboard in a real browser. What these tests need from npm is brought by the first of them.
find_program(CHROMIUM NAMES chromium chromium-browser google-chrome)
if(DASHBOARD_OK AND CHROMIUM)
  add_test(NAME browser_packages COMMAND sh ${CMAKE_SOURCE_DIR}/tests/browser/packages.sh
    ${CMAKE_BINARY_DIR}/browser)
  set_tests_properties(browser_packages PROPERTIES FIXTURES_SETUP browser TIMEOUT ${LONG_TEST_SECONDS})
  file(GLOB BROWSER_TESTS CONFIGURE_DEPENDS tests/browser/*.test.mjs)
  foreach(source ${BROWSER_TESTS})
    get_filename_component(name ${source} NAME_WE)
    add_test(NAME browser_${name} COMMAND ${NODE} --test ${source})
    set_tests_properties(browser_${name} PROPERTIES FIXTURES_REQUIRED browser
      TIMEOUT ${LONG_TEST_SECONDS}
      ENVIRONMENT "PERDURA_BUILD=${CMAKE_BINARY_DIR}")
  endforeach()
else()
  message(STATUS "no dashboard or no chromium: no browser tests")
endif()

# Instructions per task against the committed baseline; about ten seconds. Only of the build that is
# released: sanitizers, fault points and other flags have other figures.
if(TARGET instructions AND NOT PERDURA_SANITIZE AND NOT PERDURA_FAULTS
    AND CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo")
  add_test(NAME instructions COMMAND ${PYTHON3} ${CMAKE_SOURCE_DIR}/bench/instructions.py
    --build ${CMAKE_BINARY_DIR})
  set_tests_properties(instructions PROPERTIES TIMEOUT ${LONG_TEST_SECONDS} SKIP_RETURN_CODE 77)
endif()

# The longest ones begin first: a test of three minutes that begins last is waited for alone.
set(LONGEST_TESTS postgres_start conformance_postgres_test postgres_test_planning_postgres
  postgres_test_differential postgres_test_log_forgery postgres_test_stats_postgres
  postgres_test_encryption_postgres browser_packages browser_roles
  postgres_test_copy postgres_test_recovery_postgres postgres_test_cluster_faults
  memory_faults_test power_cut_test postgres_test_cluster api_test_stats_history cli_test_serve
  browser_access browser_tokens api_test_recovery engine_recovery_test_on_postgres
  engine_fire_test_on_postgres postgres_test_partitions power_images_test)
set(cost 1000)
foreach(name ${LONGEST_TESTS})
  math(EXPR cost "${cost} - 1")
  if(TEST ${name})
    set_tests_properties(${name} PROPERTIES COST ${cost})
  else()
    message(STATUS "cmake/tests.cmake: there is no test ${name}")
  endif()
endforeach()

# A server that starts ends what others left behind in cgroups: this test must be the only one.
set_tests_properties(process_cgroup_test PROPERTIES RUN_SERIAL TRUE)
