# What stands for a compiler in a run of the tests: gives what an earlier call made of the same preprocessed text with
# the same options. Sourced with $real, the compiler, $version, what tells it from others, and $store, a folder. The
# text has its line markers, without folders: they say what is a system's header, where other warnings hold. Calls that
# want more than one file, by options that are not listed here (-g among them: such objects hold paths), or that read
# others than sources and libraries, are the compiler's own.
sources='' out='' options='' before='' does=program
for arg; do
  case $before$arg in
    -o | -I | -D | -isystem) before="$arg " ;;
    -o\ /dev/*) exec "$real" "$@" ;;
    -o\ *) out=$arg before='' ;;
    -I* | -D* | -isystem*) before='' ;; # the text tells
    -c) does=object ;;
    -fsyntax-only) does=check ;;
    -O* | -m* | -std=* | -pedantic | -w | -W[!alp]* | -Wall | -fno-* | -ffp-contract=* | -f*-sections | -fsanitize=* | \
      --target=* | -fPIC | -shared | -pthread | -lm | -flto=auto | -r | -flinker-output=* | -nostdlib)
      options="$options $arg" ;;
    -*) exec "$real" "$@" ;;
    *.c) sources="$sources ${arg##*/}" ;;
    *) exec "$real" "$@" ;;
  esac
done
case $does:$sources in
  object:\ *\ * | *:) exec "$real" "$@" ;; # not one object
esac
[ "$does" = check ] || [ "$out" ] && command -v sha256sum > /dev/null || exec "$real" "$@"

before=''
for arg; do # the same call, to preprocess
  shift
  case $before$arg in
    -c | -fsyntax-only) ;;
    -o) before="-o " ;;
    -o\ *) before='' ;;
    *) set -- "$@" "$arg" ;;
  esac
done
case $does in
  object) how=-c ;;
  check) how=-fsyntax-only out='' ;;
  program) how='' ;;
esac
own=$store/$$
trap 'rm -f "$own"' EXIT
compile() { "$real" "$@" $how ${out:+-o "$out"}; }
"$real" -E "$@" > "$own" 2>&1 || { compile "$@"; exit $?; }
known=$({ echo "${version:-$real} $does$options$sources" && sed 's|^\(# [0-9]* "\)[^"]*/|\1|' "$own"; } | sha256sum)
known=$store/${known%% *}.o
if [ -e "$known" ]; then
  [ "$out" ] || exit 0
  [ "$does" = object ] || rm -f "$out"
  cp "$known" "$out" && exit 0
fi
compile "$@" 2> "$own" || { status=$?; cat "$own" >&2; exit $status; }
if [ -s "$own" ]; then cat "$own" >&2; exit 0; fi # warnings: said each time
if [ "$out" ]; then rm "$own" && cp "$out" "$own"; fi && mv "$own" "$known" # whole or not there, whoever writes it
exit 0
