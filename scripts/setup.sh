#!/usr/bin/env bash
# Installs what is missing, and only that: Debian packages and the Python environment .venv.
#
#   scripts/setup.sh demo    Arm compiler, QEMU, glowc             (make demo)
#   scripts/setup.sh quick   host compiler, glowc[test]            (make test-quick, lint, types, ...)
#   scripts/setup.sh test    every compiler and emulator, glowc[test]   (make test)
#   scripts/setup.sh analyze what test needs, and cppcheck              (make analyze)
#   scripts/setup.sh browser what quick needs, and chromium             (make test-report)
#
# VENV=DIR puts the environment elsewhere; PYTHON=python3.12 makes it with another interpreter.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=${1:-test}
venv=${VENV:-.venv}
python=${PYTHON:-python3}

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# What analyses code needs all that tests it.
[[ $mode != analyze ]] || { extra=cppcheck mode=test; }
[[ $mode != browser ]] || { extra=chromium mode=quick; }
case $mode in demo | quick | test) ;; *) die "unknown mode '$mode'; one of: demo quick test analyze browser" ;; esac

# A compiler without its C library is no compiler: gcc prints the whole path of a file that it has.
have_file() { have "$1" && [[ $("$@" 2>/dev/null) == /* ]]; }

clang_runtime() { local version; version=$(clang -dumpversion) && echo "libclang-rt-${version%%.*}-dev"; }

has_sanitizers() { compgen -G "$(clang -print-runtime-dir)/libclang_rt.asan*.a" >/dev/null; }

has_venv() { "$venv/bin/python" -c 'import pip' >/dev/null 2>&1; }

# Echoes the Debian packages that this mode needs and this machine has not.
missing_packages() {
  [[ -z ${extra:-} ]] || have "$extra" || echo "$extra"
  has_venv || "$python" -c 'import ensurepip, venv' >/dev/null 2>&1 || echo python3 python3-venv
  case $mode in demo | test)
    have arm-none-eabi-gcc || echo gcc-arm-none-eabi
    have_file arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb -print-file-name=libc.a || echo libnewlib-arm-none-eabi
    have qemu-system-arm || echo qemu-system-arm
  esac
  have gcc || echo gcc # the demo needs it too: the plugin that counts instructions in QEMU is built on the spot
  have_file gcc -print-file-name=crt1.o || echo libc6-dev
  case $mode in quick | test)
    have git || echo git
    have make || echo make
  esac
  case $mode in test)
    have aarch64-linux-gnu-gcc || echo gcc-aarch64-linux-gnu
    have_file aarch64-linux-gnu-gcc -print-file-name=crt1.o || echo libc6-dev-arm64-cross
    have arm-linux-gnueabihf-gcc || echo gcc-arm-linux-gnueabihf
    have_file arm-linux-gnueabihf-gcc -print-file-name=crt1.o || echo libc6-dev-armhf-cross
    { have qemu-aarch64 && have qemu-arm; } || echo qemu-user
    have qemu-system-aarch64 || echo qemu-system-arm
    if have clang; then has_sanitizers || clang_runtime; else echo clang; fi
    have cmake || echo cmake
    have llvm-mca-19 || echo llvm-19
    have espeak-ng || echo espeak-ng # speaks what the wake word example listens to
  esac
}

install_packages() {
  local packages=$1
  local install="apt-get install -y --no-install-recommends $packages"
  local root=()
  if [[ $(id -u) != 0 ]]; then
    # Without a terminal nobody can type a password, so sudo must work without one.
    if have sudo && { sudo -n true 2>/dev/null || [[ -t 0 ]]; }; then root=(sudo); fi
    if [[ ${#root[@]} == 0 ]] || ! have apt-get; then no_permission "$install"; fi
  fi
  have apt-get || no_permission "$install"
  say "installing $packages"
  # shellcheck disable=SC2086  # the names are words
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q >&2 &&
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive $install >&2 || no_permission "$install"
}

no_permission() {
  say "these packages are missing and could not be installed from here; run as root:"
  printf '\n  apt-get update && %s\n\n' "$1" >&2
  exit 1
}

wanted() { missing_packages | tr ' ' '\n' | LC_ALL=C sort -u | paste -sd ' ' -; }

for _ in 1 2; do # which runtime clang needs is known when clang is there
  packages=$(wanted)
  [[ -n $packages ]] || break
  install_packages "$packages"
  hash -r
done
packages=$(wanted)
[[ -z $packages ]] || die "still missing after the installation: $packages"

# The stamp is a copy of what was installed; `test` installs more than `demo` needs.
fresh() { [[ -f $venv/.setup-$1 ]] && cat pyproject.toml requirements.lock | cmp -s - "$venv/.setup-$1"; }

if [[ $mode == demo ]]; then stamp=demo; else stamp=test; fi
if "$venv/bin/python" -c '' 2>/dev/null && { fresh test || fresh "$stamp"; }; then exit 0; fi

if ! has_venv; then
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    die "$python is older than Python 3.11; name a newer one: PYTHON=python3.12 make ..."
  say "creating $venv"
  "$python" -m venv --clear "$venv"
fi
# Python compiles what is imported; pip would compile all, which takes longer than the rest.
pip_install() { "$venv/bin/python" -m pip install -q --no-compile --disable-pip-version-check "$@" >&2; }

say "installing glowc into $venv"
if [[ $stamp == demo ]]; then
  pip_install -e .
else # the versions that the tests passed with, all of them: a new release of a dependency is tried by `make lock`
  pip_install --no-deps --require-hashes -r requirements.lock # else pip looks for newer ones of `coverage[toml]`
  pip_install --no-deps --no-build-isolation -e .
fi
cat pyproject.toml requirements.lock >"$venv/.setup-$stamp"
