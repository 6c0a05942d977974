"""Show and accept the golden record: ``python -m tests.golden list``, ``show NAME``, ``accept [NAME…]``.

``NAME.part`` shows one part. `accept` records what the packages give now; the commit says why it changed.
"""

from __future__ import annotations

import sys

from tests.golden import record


def main(command: str = "", *names: str) -> str | None:
    """Run a command; return what is wrong with it."""
    known = record.entries()
    if command == "list" and not names:
        print(*known, sep="\n")
    elif command == "accept" and set(names) <= set(known):
        print(*record.accept(names) or ["Nothing changed."], sep="\n")
    elif command == "show" and len(names) == 1:
        name, _, part = (names[0], "", "") if names[0] in known else names[0].rpartition(".")
        if name not in known:
            return f"no entry {names[0]!r}: see `python -m tests.golden list`"
        texts = known[name]()
        if part and part not in texts:
            return f"no part {part!r}; the parts of {name!r} are {', '.join(texts)}"
        print(texts[part] if part else "\n\n".join(f"== {name}.{one} ==\n{texts[one]}" for one in texts))
    else:
        return __doc__
    return None


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
