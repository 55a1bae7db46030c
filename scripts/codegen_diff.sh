#!/usr/bin/env bash
# Shows how the generated C differs between BASE and this checkout. A refactoring shows nothing: exit 0.
#
#   scripts/codegen_diff.sh [BASE]      BASE: any git revision, default main
#   CPUS="host cortex-m4" MODELS="examples/digits/digits.onnx" OPTIONS="--opt speed" scripts/codegen_diff.sh v0.1
#   COMPARE=code scripts/codegen_diff.sh          the machine code that gcc makes of it, not the text
#
# Both trees, at the same time, compile every sample model (examples/, and ../shared/models where it exists) for every
# CPU of boards/_cpu, on a board with room for all of them; with JOBS=1 one tree after the other.
# Exit status 1 when any generated line differs.
set -euo pipefail
cd "$(dirname "$0")/.."

base=${1:-main}
here=$PWD
python=${VENV:-$here/.venv}/bin/python
[[ $python == /* ]] || python=$here/$python
shopt -s nullglob globstar

work=$(mktemp -d)
cleanup() {
  { kill "$!" && wait; } 2>/dev/null || true
  git -C "$here" worktree remove --force "$work/tree" 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
git worktree add --quiet --detach "$work/tree" "$base"

# With its own folder first on the path, `import glowc` is the glowc of that tree.
generate() { # TREE OUT, in a subshell
  cd "$1"
  PYTHONPATH=$1 exec "$python" "$here/scripts/compile_all.py" "$2" "${boards[*]}" "${models[@]}"
}

if [[ -n ${MODELS:-} ]]; then
  read -ra models <<<"$MODELS"
  models=("${models[@]/#/$here/}")
else
  models=("$here"/examples/**/*.onnx "$here"/../shared/models/*/model.onnx)
fi
[[ ${#models[@]} -gt 0 ]] || { echo "codegen-diff: no models" >&2; exit 2; }

cpus=(boards/_cpu/*.toml)
cpus=("${cpus[@]##*/}")
read -ra cpus <<<"${CPUS:-${cpus[*]%.toml}}"
boards=()
for cpu in "${cpus[@]}"; do # the C depends on the CPU; the board of this one is as large as the host
  mkdir -p "$work/boards/$cpu"
  sed "s/\"host\"/\"$cpu\"/g" boards/host/board.toml >"$work/boards/$cpu/board.toml"
  boards+=("$work/boards/$cpu")
done

generate "$work/tree" "$work/base" &
[[ ${JOBS:-2} == 2 ]] || wait $!
(generate "$here" "$work/this")
wait $!
# A model that one tree refuses is a difference too.
find "$work/base" "$work/this" -name error.txt -exec sed -i -e "s#$work/tree#TREE#g" -e "s#$here#TREE#g" {} +
bundles=$(find "$work/this" -mindepth 1 -maxdepth 1 -type d | wc -l)
refused=$(find "$work/this" -name error.txt | wc -l)
if [[ $refused == "$bundles" ]]; then
  cat "$work"/this/*/error.txt | head -n 20 >&2
  echo "codegen-diff: this tree compiles no model" >&2
  exit 2
fi
cd "$work"
if [[ ${COMPARE:-text} == code ]]; then
  "$python" "$here/scripts/disasm_diff.py" base this || exit 1
elif diff -ruN -I 'glowc [0-9.]*+[0-9a-f]*' --exclude=report.json --exclude=README.md base this; then
  echo "codegen-diff: no difference to $base in $((bundles - refused)) bundles ($refused refused by both)"
else
  exit 1
fi
