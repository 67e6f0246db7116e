#!/usr/bin/env python3
"""Whether Harbor's own models take a trajectory of `agentd export --format atif`, which comes on standard input.

    agentd export ID --format atif | python3 tests/harbor/check.py DIRECTORY

Downloads a fixed version of Harbor, and pydantic, from the package index into the directory. Only the models of
trajectories are loaded: the whole of Harbor needs Python 3.12.
"""

import json
import pathlib
import subprocess
import sys
import types
import venv
import zipfile

HARBOR = "harbor==0.26.0"


def main():
    place = pathlib.Path(sys.argv[1])
    python = place / "env/bin/python"
    if len(sys.argv) == 2:
        if not python.exists():
            venv.create(place / "env", with_pip=True)
        pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "pydantic"], check=True)
        newer = ["--python-version", "3.13", "--only-binary=:all:", "--no-deps", "-d", place]
        subprocess.run([*pip, "download", *newer, HARBOR], check=True)
        for wheel in place.glob("harbor-*.whl"):
            zipfile.ZipFile(wheel).extractall(place / "harbor")
        return subprocess.run([python, __file__, str(place), "models"]).returncode
    for name in ["harbor", "harbor.models"]:
        package = types.ModuleType(name)
        package.__path__ = [str(place / "harbor" / name.replace(".", "/"))]
        sys.modules[name] = package
    from harbor.models.trajectories import Trajectory

    trajectory = Trajectory.model_validate(json.load(sys.stdin))
    print(f"valid: {trajectory.schema_version}, {len(trajectory.steps)} steps")
    return 0


sys.exit(main())
