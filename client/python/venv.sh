# For the scripts beside it: makes the venv with the tools of requirements-dev.txt, once for each
# version of that file, and what is generated in src. Sets build and venv.
# shellcheck shell=bash
build=${BUILD:-$(dirname "$(dirname "$here")")/build/clients/python}
mkdir -p "$build"
build=$(cd "$build" && pwd)
venv=$build/venv
if ! cmp --quiet "$here/requirements-dev.txt" "$venv/installed"; then
  rm -rf "$venv"
  "${PYTHON:-python3}" -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements-dev.txt"
  cp "$here/requirements-dev.txt" "$venv/installed"
fi
"$venv/bin/python" -B "$here/hatch_build.py"
