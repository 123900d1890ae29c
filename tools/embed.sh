#!/bin/sh
# Embeds files as C arrays with a table of names: embed.sh SRC_ROOT OUT.c FILE-OR-FOLDER...
# The names are the paths below SRC_ROOT; of a folder all files are taken, named FOLDER/FILE.
# base/embedded.h declares the table.
set -eu
root=$1
out=$2
shift 2
list=$out.list
for path in "$@"; do
    if [ -d "$path" ]; then
        for file in "$path"/*; do
            printf '%s %s\n' "$(basename "$path")/$(basename "$file")" "$file"
        done
    else
        printf '%s %s\n' "${path#"$root"/}" "$path"
    fi
done > "$list"
{
    echo '#include "base/embedded.h"'
    n=0
    while read -r name file; do
        echo "static const unsigned char file_$n[] = {"
        od -An -v -tx1 "$file" | sed 's/ \([0-9a-f][0-9a-f]\)/0x\1,/g'
        echo "0};"
        n=$((n + 1))
    done < "$list"
    echo "const struct embedded embedded_files[] = {"
    n=0
    while read -r name file; do
        hash=$(sha256sum < "$file")
        echo "{\"$name\", (const char *)file_$n, sizeof file_$n - 1, \"${hash%% *}\"},"
        n=$((n + 1))
    done < "$list"
    echo "{0, 0, 0, 0}};"
} > "$out.new"
mv "$out.new" "$out"
rm -f "$list"
