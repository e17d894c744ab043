#!/usr/bin/env bash
# Measures how long the first 'make demo' and the first 'make test' take: from a fresh clone of the last commit, with empty caches of Go and
# an empty bin/, every tool built. It needs what these two need, a network, some 15 GB in TMPDIR, and a machine with nothing else to do.
#
#   hack/measure-first.sh [demo|test] ...     both when none is named; each begins with empty caches
#
# At the end it prints the times, and the rows of the table 'durations' of hack/tools.sh as they are here.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# What 'make demo' prints once its Machines run; it then stays until it is interrupted.
readonly shown='Try next'
readonly patience=$((3 * 60 * 60)) # seconds

die() {
  printf 'measure-first: %s\n' "$*" >&2
  exit 1
}

# empty FOLDER sets up what a new user has: a clone, and no caches.
empty() {
  git clone --quiet --no-hardlinks "$root" "$1/clone"
  mkdir -p "$1/tmp"
  unset KUBEBUILDER_ASSETS TOFU
  export GOCACHE=$1/build GOMODCACHE=$1/modules TOOLS=build TMPDIR=$1/tmp
}

# first_demo FOLDER ends once the Machines run.
first_demo() {
  local log=$1/log group
  : >"$log"
  set -m # a group of its own, which is interrupted as from a terminal
  make -C "$1/clone" demo >"$log" 2>&1 </dev/null &
  group=$!
  set +m
  # shellcheck disable=SC2064 # they are known now
  trap "end_demo $group '$1'" EXIT
  until grep -q "$shown" "$log"; do
    kill -0 "$group" 2>/dev/null || die "make demo has ended before its Machines ran: $(tail -n 5 "$log")"
    ((SECONDS < patience)) || die "no Machines after $patience s"
    sleep 1
  done
  took=$SECONDS
  trap - EXIT
  end_demo "$group" "$1"
}

# end_demo GROUP FOLDER
end_demo() {
  kill -INT -- "-$1" 2>/dev/null || true
  wait "$1" 2>/dev/null || true # it was interrupted
  make -C "$2/clone" demo-down >/dev/null
}

# first_test FOLDER
first_test() {
  timeout "$patience" make -C "$1/clone" test >"$1/log" 2>&1 </dev/null || die "make test has failed: $(tail -n 20 "$1/log")"
  took=$SECONDS
}

# measure TARGET FOLDER
measure() (
  took=
  empty "$2"
  SECONDS=0
  "first_$1" "$2"
  printf 'make %s: %d min %02d s, with %s of Go modules and %s in all\n' "$1" $((took / 60)) $((took % 60)) \
    "$(du -sh "$2/modules" | cut -f1)" "$(du -sh "$2" | cut -f1)"
  sed -nE 's/^\[[0-9]+\/[0-9]+\] ([a-z-]+): built in ([0-9]+) s.*/  \1|\2/p' "$2/log"
)

main() {
  local target targets=("$@") scratch
  [[ $# -gt 0 ]] || targets=(demo test)
  for target in "${targets[@]}"; do
    [[ $target =~ ^(demo|test)$ ]] || die "'$target' is not measured; name demo or test"
  done
  [[ -z $(git -C "$root" status --porcelain) ]] || printf 'measure-first: what is not committed is not measured\n' >&2
  printf '%s, %s processors, commit %s\n' "$(go version)" "$(nproc)" "$(git -C "$root" rev-parse --short HEAD)"
  for target in "${targets[@]}"; do
    scratch=$(mktemp -d "${TMPDIR:-/tmp}/machine-iac-first-XXXXXX")
    # shellcheck disable=SC2064 # it is known now
    trap "echo 'measure-first: everything is kept in $scratch; $scratch/log is the output' >&2" EXIT
    measure "$target" "$scratch"
    trap - EXIT
    chmod -R u+w "$scratch" # Go's modules are read-only
    rm -rf "$scratch"
  done
}

main "$@"
