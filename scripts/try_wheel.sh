#!/usr/bin/env bash
# Build a wheel and use it from a new environment in a folder without the source tree.
# BUILDER is the Python whose pip builds it.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
builder=${BUILDER:-python3}
case $builder in */*) builder=$(cd "$(dirname "$builder")" && pwd)/$(basename "$builder") ;; esac
limit_mb=450

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
rm -rf dist
"$builder" -m pip --disable-pip-version-check wheel --quiet --no-deps --wheel-dir dist .
wheel=$(echo "$root"/dist/deniable-*.whl)

cd "$scratch"
"$builder" -m venv new
size_of() { du -sm new | cut -f1; }
empty=$(size_of)
new/bin/python -m pip --disable-pip-version-check install --quiet "$wheel"
installed=$(($(size_of) - empty))
echo "wheel $(($(stat -c %s "$wheel") / 1000)) kB; installed with what it needs: $installed MB"
if ((installed >= limit_mb)); then
  echo "the core install must stay under $limit_mb MB" >&2
  exit 1
fi

cp "$root"/examples/bank.jsonl .
new/bin/deniable sanitize bank.jsonl --column text --mechanism clusant --epsilon 8 \
  -o safe.jsonl --certificate safe.cert.json
test "$(wc -l <bank.jsonl)" = "$(wc -l <safe.jsonl)"
if cmp -s bank.jsonl safe.jsonl; then
  echo "the output is the input" >&2
  exit 1
fi
new/bin/deniable verify safe.cert.json | tail -n 1
new/bin/python - <<'PYTHON'
import deniable

assert "site-packages" in deniable.__file__, deniable.__file__
assert len(deniable.Space.default()) >= 30_000
print("the wheel works without the source tree")
PYTHON
