# The files that examples name (sweeps, reports, baselines), made small by the binary itself in a scratch folder.
import json
import os
import subprocess

TINY = "gdn/fwd/len=5,HK=1,HV=1,K=16,V=16/bf16/gate=mild/keys=iid/precise/seed=1"
OTHER = TINY.replace("seed=1", "seed=2")
SWEEP = '{"schema": "deltagauge.sweep/1", "name": "tiny", "cases": ["%s", "%s"]}' % (TINY, OTHER)
# A history is of a device: what the report of a machine with a GPU says.
DEVICE = {"name": "none", "sm": 90, "sm_count": 1, "driver": 12080, "runtime": 12080,
          "clocks": {"sm_mhz": 1, "memory_mhz": 1}}


# Runs a line as a shell would in folder, where deltagauge is the binary.
def shell(binary, line, folder, **variables):
    path = os.path.dirname(os.path.abspath(binary)) + ":" + os.environ["PATH"]
    environment = dict(os.environ, PATH=path, **variables)
    return subprocess.run(["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


# Copies of a report of timings: name and the time when it says that it was started.
def make_timed(source, folder, names):
    with open(source, encoding="utf-8") as file:
        report = dict(json.load(file), device=DEVICE)
    for second, name in enumerate(names):
        os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(dict(report, started=f"2000-01-01T00:00:{second:02}+00:00"), file)


# Yields what went wrong. timed: names of the reports of timings that are wanted.
def make(binary, folder, timed):
    for name in ("gdn/smoke", "gdn/edge", "gdn/perf", "gdn/frontier", "gdn/cp", "gdn/replay", "cases/tiny"):
        path = os.path.join(folder, "configs", name + ".json")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(SWEEP)
    one = "deltagauge %s configs/gdn/smoke.json --backend 'reference.recurrent*' "
    lines = [one % "validate" + "--report report", one % "bench" + "--timer cpu --min-time 0.01 --json timed.json"]
    lines += [one % "validate" + f"--shard {i}/2 --json shard{i}.json" for i in (1, 2)]
    for line in lines:
        ran = shell(binary, line, folder)
        if ran.returncode:
            yield f"{line}: exit {ran.returncode}: {ran.stderr}"
            return
    make_timed(os.path.join(folder, "timed.json"), folder, timed)
