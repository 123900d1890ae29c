#!/bin/sh
# Brings what tests need from npm (package-lock.json of their folder, checked by hash) into a folder, once:
# packages.sh FOLDER [FOLDER-OF-THE-TESTS, else this one]
set -eu
from=$(cd "${2:-$(dirname "$0")}" && pwd)
mkdir -p "$1"
cd "$1"
cmp -s "$from/package-lock.json" installed && exit 0
cp "$from/package.json" "$from/package-lock.json" .
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
cp package-lock.json installed
