#!/bin/sh
# Installs what building, running or testing needs on Debian (as root or with sudo), and says what
# to install elsewhere. Usage: deps.sh build|test|model
set -eu
build="gcc g++ cmake ninja-build pkg-config libsqlite3-dev libevent-dev libssl-dev
libcurl4-openssl-dev libyaml-dev libzstd-dev libpcre2-dev libpq-dev libsodium-dev libnghttp2-dev
libprotobuf-dev librabbitmq-dev scdoc tzdata nodejs npm"
test="$build clang clang-tidy libclang-rt-14-dev libcmocka-dev python3 sqlite3 curl zstd git patch
chromium fonts-dejavu-core valgrind postgresql pgbouncer prometheus spin python3-dateutil
python3-croniter python3-psycopg2 testssl.sh protobuf-compiler
rabbitmq-server python3-pika"
case "${1:-build}" in
build) packages=$build ;;
test) packages=$test ;;
model) packages="gcc python3 spin" ;;
*) echo "usage: deps.sh build|test|model" >&2; exit 2 ;;
esac
missing=""
for package in $packages; do
    case "$package" in
    nodejs) command -v node > /dev/null 2>&1 && continue ;; # also from elsewhere than Debian
    npm) command -v npm > /dev/null 2>&1 && continue ;;
    esac
    dpkg-query -W -f='${Status}' "$package" 2> /dev/null | grep -q 'install ok installed' ||
        missing="$missing $package"
done
[ -n "$missing" ] || exit 0
if ! command -v apt-get > /dev/null 2>&1; then
    echo "perdura needs these packages (Debian's names), please install them:$missing" >&2
    exit 1
fi
sudo=""
if [ "$(id -u)" != 0 ]; then
    sudo=sudo
    command -v sudo > /dev/null 2>&1 || {
        echo "perdura needs these packages; run as root: apt-get install$missing" >&2
        exit 1
    }
fi
echo "installing:$missing"
$sudo apt-get update -q > /dev/null
DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -q --no-install-recommends $missing > /dev/null
