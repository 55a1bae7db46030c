#!/usr/bin/env bash
# Source archive -> wheel -> tests, on every Python from 3.11 on that this machine has: `make pythons`.
#
# Dependencies are those of requirements.lock, checked by their hashes. PYTHONS="python3.12 ..." names others. What runs is
# the installed wheel: the tests are copied beside no source.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=${VENV:-.venv}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tests=(tests/golden tests/unit/test_cli_bundles.py tests/unit/test_cli_text.py tests/ops/test_binary.py)

# Interpreters on the path and, where pyenv is, all that it has.
candidates() {
  compgen -c | grep -E '^python3\.[0-9]+$' | sort -u || true
  ls -d "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/python3 2>/dev/null || true
}

"$venv/bin/python" -m hatchling build -t sdist -d "$work" >/dev/null 2>&1
mkdir "$work/source" "$work/run"
tar -xzf "$work"/glowc-*.tar.gz -C "$work/source" --strip-components=1
(cd "$work/source" && "$OLDPWD/$venv/bin/python" -m hatchling build -t wheel -d "$work" >/dev/null 2>&1)
cp -r tests examples "$work/run/"

failed=0 seen=
for python in ${PYTHONS:-$(candidates)}; do
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || continue
  case " $seen " in *" $version "*) continue ;; esac
  seen+=" $version"
  env="$work/venv-$version" log="$work/$version.log"
  if "$python" -m venv "$env" >"$log" 2>&1 &&
    "$env/bin/python" -m pip install -q --disable-pip-version-check --require-hashes --no-deps -r requirements.lock >>"$log" 2>&1 &&
    "$env/bin/python" -m pip install -q --disable-pip-version-check --no-deps "$work"/glowc-*.whl >>"$log" 2>&1 &&
    (cd "$work/run" && "$env/bin/python" -m pytest -q -p no:cacheprovider "${tests[@]}" >>"$log" 2>&1); then
    printf 'Python %s: %s\n' "$("$env/bin/python" -c 'import platform; print(platform.python_version())')" "$(tail -1 "$log")"
  else
    failed=1
    printf 'Python %s failed:\n' "$version"
    tail -15 "$log"
  fi
done
[[ -n $seen ]] || { echo "no Python from 3.11 on"; failed=1; }
exit $failed
