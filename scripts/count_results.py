# Prints "N passed, N failed, N skipped" from ctest's JUnit file. usage: count_results.py RESULTS.xml CTEST_STATUS
# Exits 0 only when ctest did, something passed and nothing failed. A skip is neither a pass nor a failure; a test that
# could not be started (ctest's "notrun" without a skip message) is a failure.
import os
import sys
import xml.etree.ElementTree


def outcome(test):
    if test.get("status") == "run":
        return "passed"
    skipped = test.find("skipped")
    message = skipped.get("message", "") if skipped is not None else ""
    if message.startswith("SKIP_") or test.get("status") == "disabled":
        return "skipped"
    return "failed"


def main(path, status):
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    failed = []
    if os.path.exists(path):
        for test in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
            counts[outcome(test)] += 1
            if outcome(test) == "failed":
                failed.append(test.get("name"))
    for name in failed:
        print("failed:", name)
    if status and not failed:
        print(f"ctest exited with {status}")
    print(", ".join(f"{count} {name}" for name, count in counts.items()))
    return 0 if status == 0 and counts["passed"] and not failed else 1


sys.exit(main(sys.argv[1], int(sys.argv[2])))
