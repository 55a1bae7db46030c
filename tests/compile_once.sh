# What stands for a compiler in a run of the tests: gives the object of an earlier call with the same preprocessed text
# and the same options. Sourced with $real, the compiler, and $store, a folder. The text has its line markers, without
# folders: they say what is a system's header, where other warnings hold. Calls that want more than one object of one
# file of C, by options that are not listed here (-g among them: such objects hold paths), are the compiler's own.
source='' out='' options=$real before='' compiles=''
for arg; do
  case $before$arg in
    -o | -I | -D | -isystem) before="$arg " ;;
    -o\ *) out=$arg before='' ;;
    -I* | -D* | -isystem\ *) before='' ;; # the text tells
    -c) compiles=1 ;;
    -O* | -m* | -std=* | -pedantic | -w | -W[!alp]* | -Wall | -fno-* | -ffp-contract=* | -f*-sections)
      options="$options $arg" ;;
    -*) exec "$real" "$@" ;;
    *.c) [ -z "$source" ] || exec "$real" "$@"; source=$arg ;;
    *) exec "$real" "$@" ;;
  esac
done
[ "$compiles" ] && [ "$source" ] && [ "$out" ] && command -v sha256sum > /dev/null || exec "$real" "$@"

for arg; do # the same call without -c and -o
  shift
  case $before$arg in
    -c) ;;
    -o) before="-o " ;;
    -o\ *) before='' ;;
    *) set -- "$@" "$arg" ;;
  esac
done
own=$store/$$
trap 'rm -f "$own"' EXIT
"$real" -E "$@" > "$own" 2>&1 || exec "$real" "$@" -c -o "$out"
known=$({ echo "$options ${source##*/}" && sed 's|^\(# [0-9]* "\)[^"]*/|\1|' "$own"; } | sha256sum)
known=$store/${known%% *}.o
if [ ! -e "$known" ]; then
  "$real" "$@" -c -o "$out" 2> "$own" || { status=$?; cat "$own" >&2; exit $status; }
  if [ -s "$own" ]; then cat "$own" >&2; exit 0; fi # warnings: said each time
  cp "$out" "$own" && mv "$own" "$known" # whole or not there, whoever else writes it
  exit 0
fi
cat "$known" > "$out"
