#!/usr/bin/python3
"""check.py SCHEMA REPORT...: holds reports against the schema (needs python3-jsonschema).

Prints "fits PATH" or "refused PATH: where: why" for each; exit 1 when one is refused.
"""
import json
import sys

from jsonschema import Draft202012Validator


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def main(schema_path, *report_paths):
    schema = load(schema_path)
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    status = 0
    for path in report_paths:
        error = next(validator.iter_errors(load(path)), None)
        if error is None:
            print(f"fits {path}")
        else:
            status = 1
            print(f"refused {path}: /{'/'.join(map(str, error.absolute_path))}: {error.message}")
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
