#!/usr/bin/env bash
# Checks what must be true of the repository besides its tests; CI and 'make verify' run the same.
#
# To add a step: write a function below that only reads, prints what is wrong and how to fix it, and fails; then add a line to the
# list 'steps'. What can be said in Go belongs into hack/verify as a test instead, where 'make test' runs it too.
#
# The last step compares the tree, untracked files included, with what it was at the start. A tree that was clean must be clean
# at the end, so that generated files and leftovers show. One that was dirty may stay as it was, so that this can be run in the
# midst of work, but no step may change it. With CI set, it must be clean from the start.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# name of the function | what it checks
steps=(
  'scripts|shell scripts can be parsed'
  'crds|CRDs are those of go.mod'
  'packages|packages and variables of stacks are as generated'
  'modules_tidy|go.mod and go.sum are tidy'
  'go_format|Go code is formatted'
  'hcl_format|HCL is formatted'
  'go_lint|Go code passes the linters'
  'repository|docs match the tools, dependencies and tests'
  'tree|the tree is as it was'
)

scripts() {
  local script failed=0
  while IFS= read -r script; do
    bash -n "$script" || failed=1
  done < <(git ls-files --cached --others --exclude-standard '*.sh' .ci/run)
  return "$failed"
}

crds() { hack/verify-crds.sh; }

packages() { go run ./hack/packaging generate -check; }

modules_tidy() {
  { go mod tidy -diff && go -C gardener mod tidy -diff; } || {
    echo "run 'make generate'" >&2
    return 1
  }
}

go_format() {
  { bin/golangci-lint fmt --diff && (cd gardener && ../bin/golangci-lint fmt --diff); } || {
    echo "run 'make fmt'" >&2
    return 1
  }
}

hcl_format() {
  local folder failed=0
  for folder in modules examples stacks; do
    bin/tofu fmt -check -diff -recursive "$folder" || failed=1
  done
  ((failed == 0)) || {
    echo "run 'make fmt'" >&2
    return 1
  }
}

# Another run on this machine is waited for.
go_lint() { bin/golangci-lint run --allow-serial-runners && (cd gardener && ../bin/golangci-lint run --allow-serial-runners); }

repository() { go test -count 1 ./hack/verify; }

# snapshot prints what the tree is like: what git sees, and the content of all that differs from the last commit.
snapshot() {
  git status --porcelain --untracked-files=all
  git diff HEAD
  git ls-files --others --exclude-standard -z | xargs -0 -r sha256sum --
}

tree() {
  snapshot >"$scratch/end"
  if [[ -n ${CI:-} && -s $scratch/end ]]; then
    git status --short --untracked-files=all >&2
    echo "CI checks what is committed: commit these files, remove them, or ignore them" >&2
    return 1
  fi
  diff -u "$scratch/start" "$scratch/end" || {
    echo "a step has changed the tree, or somebody has meanwhile; commit what is generated, ignore what is left over" >&2
    return 1
  }
}

main() {
  local tool
  for tool in golangci-lint tofu; do
    [[ -x bin/$tool ]] || {
      echo "verify: bin/$tool is missing; run 'make verify', which builds it" >&2
      exit 1
    }
  done
  snapshot >"$scratch/start"
  local position=0 entry name what started failed=()
  for entry in "${steps[@]}"; do
    IFS='|' read -r name what <<<"$entry"
    position=$((position + 1))
    started=$SECONDS
    printf '[%d/%d] %s ... ' "$position" "${#steps[@]}" "$what"
    if "$name" >"$scratch/output" 2>&1; then
      printf 'ok (%d s)\n' "$((SECONDS - started))"
    else
      printf 'FAILED (%d s)\n' "$((SECONDS - started))"
      cat "$scratch/output"
      failed+=("$what")
    fi
  done
  [[ ${#failed[@]} -eq 0 ]] && return
  printf 'verify: failed: %s\n' "${failed[@]}" >&2
  exit 1
}

main "$@"
