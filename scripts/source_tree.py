# The project's own files, for the checks: tracked or new, never ignored ones. Paths are relative to the top.
import os
import subprocess

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CPP = (".cc", ".h", ".cu", ".cuh")


def files():
    listing = subprocess.run(["git", "-C", TOP, "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True)
    if listing.returncode == 0:
        paths = sorted(set(listing.stdout.splitlines()))
    else:  # an unpacked archive
        paths = []
        for folder, folders, names in os.walk(TOP):
            folders[:] = sorted(d for d in folders if not d.startswith((".git", "__pycache__", "build", "install")))
            paths += [os.path.relpath(os.path.join(folder, name), TOP) for name in sorted(names)]
    return [path for path in paths if os.path.isfile(os.path.join(TOP, path))]


def lines(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        return file.read().split("\n")


def report(name, problems):
    for problem in problems:
        print(problem)
    print(f"{name}: {len(problems)} problem{'' if len(problems) == 1 else 's'}")
    return 1 if problems else 0
