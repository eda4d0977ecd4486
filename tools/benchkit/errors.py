"""The one exception of the tools: a sentence a user can act on, and its exit code."""

OK, REGRESSION, UNUSABLE, NOT_COMPARABLE, INTERRUPTED = 0, 1, 2, 3, 130


class UserError(Exception):
    """Bad usage or unusable input; caught once, at the edge of each script."""

    def __init__(self, sentence: str, exit_code: int = UNUSABLE) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code
