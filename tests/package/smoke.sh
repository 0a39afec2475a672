#!/usr/bin/env bash
# Builds sdist and wheel (the wheel from the sdist), installs the wheel into a fresh environment, and uses it from a
# folder outside the tree, where no source of ours can be found.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$BIN/python" -m build --quiet --outdir "$work/dist" "$root"
"${PYTHON:-python3}" -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet "$work"/dist/*.whl

cd "$work"
cp "$root/tests/package/use_wheel.py" .
"$work/venv/bin/python" -W error use_wheel.py "$root"
"$work/venv/bin/frostline" --version
"$work/venv/bin/frostline" simulate q06 --policy fifo,easy,asrpt --out run --json >summary.json
"$work/venv/bin/frostline" solve tiny/pool-01 --work 1 --quiet
"$work/venv/bin/frostline" bench --check --only tiny
"$work/venv/bin/frostline" check run/schedule-easy.json.gz --quiet
echo "the wheel works outside the tree"
