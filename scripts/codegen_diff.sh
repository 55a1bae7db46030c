#!/usr/bin/env bash
# Shows how the generated C differs between BASE and this checkout. A refactoring shows nothing: exit 0.
#
#   scripts/codegen_diff.sh [BASE]      BASE: any git revision, default main
#   BOARDS="host mps2-an386" MODELS="examples/digits/digits.onnx" scripts/codegen_diff.sh v0.1
#
# Both trees compile every sample model (examples/, and ../shared/models where it exists) for every board.
# Exit status 1 when any generated line differs.
set -euo pipefail
cd "$(dirname "$0")/.."

base=${1:-main}
boards=${BOARDS:-mps2-an386 mps3-an547 linux-aarch64}
here=$PWD
python=${VENV:-$here/.venv}/bin/python
[[ $python == /* ]] || python=$here/$python

work=$(mktemp -d)
cleanup() {
  git -C "$here" worktree remove --force "$work/tree" 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
git worktree add --quiet --detach "$work/tree" "$base"

# With its own folder first on the path, `python -m glowc` is the glowc of that tree.
generate() { # TREE OUT
  local tree=$1 out=$2 model board name
  for model in "${models[@]}"; do
    for board in $boards; do
      name=$(basename "$(dirname "$model")")-$(basename "$model" .onnx)-$board
      mkdir -p "$out/$name"
      (cd "$tree" && "$python" -m glowc compile "$model" --board "$board" -o "$out/$name/bundle") \
        >"$work/log" 2>&1 && continue
      # A model that one tree refuses is a difference too.
      sed -e "s#$tree#TREE#g" -e "s#$out#OUT#g" "$work/log" >"$out/$name/error.txt"
    done
  done
}

if [[ -n ${MODELS:-} ]]; then
  read -ra models <<<"$MODELS"
  models=("${models[@]/#/$here/}")
else
  shopt -s nullglob globstar
  models=("$here"/examples/**/*.onnx "$here"/../shared/models/*/model.onnx)
fi
[[ ${#models[@]} -gt 0 ]] || { echo "codegen-diff: no models" >&2; exit 2; }

generate "$work/tree" "$work/base"
generate "$here" "$work/this"
bundles=$(find "$work/this" -mindepth 1 -maxdepth 1 -type d | wc -l)
refused=$(find "$work/this" -name error.txt | wc -l)
if [[ $refused == "$bundles" ]]; then
  cat "$work"/this/*/error.txt | head -n 20 >&2
  echo "codegen-diff: this tree compiles no model" >&2
  exit 2
fi
cd "$work"
if diff -ruN --exclude=report.json --exclude=README.md base this; then
  echo "codegen-diff: no difference to $base in $((bundles - refused)) bundles ($refused refused by both)"
else
  exit 1
fi
