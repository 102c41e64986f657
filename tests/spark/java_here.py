"""Whether Spark can run here: `python tests/spark/java_here.py` ends well if it can, and says why if it cannot."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

LEAST = 17


def why_not() -> str | None:
    """What stands in the way of Spark 4, or nothing."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=os.path.join(home, "bin") if home else None)
    if java is None:
        return f"Spark needs Java {LEAST} or newer, and there is no java here; install a JDK, or set JAVA_HOME"
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(\d+)', told.stderr + told.stdout)
    if found is None:
        return f"{java} -version does not say which Java it is; Spark needs Java {LEAST} or newer"
    if int(found[1]) < LEAST:
        return f"Spark needs Java {LEAST} or newer, and {java} is Java {found[1]}; set JAVA_HOME to a newer one"
    return None


if __name__ == "__main__":
    reason = why_not()
    if reason is not None:
        print(f"the Spark tests are skipped: {reason}", flush=True)
        sys.exit(1)
