#!/usr/bin/env bash
# Makes the two fonts of the page from Geist (text) and Source Serif 4 (headings and sentences), both under the SIL Open Font License (OFL.txt):
# only the signs below and weights 400 to 600. Other signs come from a font of the visitor's system.
# Needs npm, and Python with fonttools and brotli. The name "Source" is reserved for unmodified files.
set -euo pipefail
export SOURCE_DATE_EPOCH=0
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --silent --prefix . @fontsource-variable/geist@5.3.0 @fontsource-variable/source-serif-4@5.3.1

make() { # NAME FAMILY FEATURES SIGNS
  local from=node_modules/@fontsource-variable/$2
  fonttools varLib.instancer -q "$from/files/$2-latin-wght-normal.woff2" wght=400:600 -o "$1.ttf"
  pyftsubset "$1.ttf" --text="$4" --layout-features="$3" --no-hinting --flavor=woff2 --drop-tables+=STAT,GDEF \
    --name-IDs=0 --output-file="$here/$1.woff2"
}
letters=$(printf '%s' {A..Z} {a..z} {0..9})
words=" !\"'(),-./:;?_’“”…$letters"
make serif source-serif-4 kern "$words"
make sans geist tnum "$words#\$%&*+<=>@[\\]^\`{|}~ ±²·×–—‘−"
ls -l "$here"
