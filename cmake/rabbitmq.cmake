# RabbitMQ: librabbitmq in the program. Without it the program is built without brokers and says so
# (`perdura version --features`); PERDURA_RABBITMQ=ON makes that an error, OFF leaves it out. Sets
# RABBITMQ_OK; to be read before the first target.
set(PERDURA_RABBITMQ AUTO CACHE STRING "AUTO, ON or OFF: messages of RabbitMQ")
set(RABBITMQ_OK FALSE)
if(NOT PERDURA_RABBITMQ STREQUAL "OFF")
  pkg_check_modules(RABBITMQ IMPORTED_TARGET librabbitmq>=0.10)
  if(RABBITMQ_FOUND)
    set(RABBITMQ_OK TRUE)
    add_compile_definitions(PERDURA_RABBITMQ=1)
  elseif(PERDURA_RABBITMQ STREQUAL "ON")
    message(FATAL_ERROR "RabbitMQ needs librabbitmq-dev")
  else()
    message(WARNING "RabbitMQ is left out: it needs librabbitmq-dev")
  endif()
endif()
