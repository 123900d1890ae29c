#!/bin/sh
# Brings what the browser tests need from npm (package-lock.json, checked by hash) into a folder, once:
# packages.sh FOLDER
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
cd "$1"
cmp -s "$here/package-lock.json" installed && exit 0
cp "$here/package.json" "$here/package-lock.json" .
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
cp package-lock.json installed
