#!/bin/sh
# Embeds files as C arrays with a table of names: embed.sh SRC_ROOT OUT.c FILE...
# The names are the paths below SRC_ROOT; base/embedded.h declares the table.
set -eu
root=$1
out=$2
shift 2
{
    echo '#include "base/embedded.h"'
    n=0
    for file in "$@"; do
        echo "static const unsigned char file_$n[] = {"
        od -An -v -tx1 "$file" | sed 's/ \([0-9a-f][0-9a-f]\)/0x\1,/g'
        echo "0};"
        n=$((n + 1))
    done
    echo "const struct embedded embedded_files[] = {"
    n=0
    for file in "$@"; do
        echo "{\"${file#"$root"/}\", (const char *)file_$n, sizeof file_$n - 1},"
        n=$((n + 1))
    done
    echo "{0, 0, 0}};"
} > "$out.new"
mv "$out.new" "$out"
