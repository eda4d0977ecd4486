"""How a script gets its Python packages: the root's .venv when it exists, else one clear sentence.

Standard library only: this runs before anything else can be imported.
"""

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from benchkit.errors import INTERRUPTED, UNUSABLE, UserError

ROOT = Path(__file__).resolve().parents[2]


def use_project_python() -> None:
    """Restarts the script under the project's own Python unless it already runs there."""
    python = ROOT / ".venv" / "bin" / "python"
    if python.exists() and Path(sys.prefix).resolve() != (ROOT / ".venv").resolve():
        os.execv(python, [str(python), *sys.argv])


def run(main: Callable[[list[str]], int]) -> None:
    """Runs `main(arguments)` and ends the process with its exit code: the one catch at the edge."""
    try:
        code = main(sys.argv[1:])
        sys.stdout.flush()
    except UserError as error:
        print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        code = error.exit_code
    except ModuleNotFoundError as error:
        print(
            f"{Path(sys.argv[0]).name}: the Python package '{error.name}' is missing; "
            "run tools/test.sh once, it sets up .venv at the root",
            file=sys.stderr,
        )
        code = UNUSABLE
    except KeyboardInterrupt:
        print(f"{Path(sys.argv[0]).name}: interrupted", file=sys.stderr)
        code = INTERRUPTED
    except BrokenPipeError:  # `compare.py … | head`: the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = UNUSABLE
    except Exception as error:  # a bug must not look like a regression (exit code 1)
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(where.filename).name}:{where.lineno}"
        print(
            f"{Path(sys.argv[0]).name}: internal error at {place}: {type(error).__name__}: {error}",
            file=sys.stderr,
        )
        code = UNUSABLE
    sys.exit(code)
