"""``synovia``: the application, and ``main``, which runs a command."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper
from typing import Any, Final

import click

from synovia.cli import completion
from synovia.cli.command import Decorator
from synovia.cli.output import REACHED, talk
from synovia.cli.progress import CompileNotice
from synovia.cli.uncompiled import NeedsCompilerError, forget_kernels, require_compiled
from synovia.errors import MissingExtraError, SynoviaError, did_you_mean

_BAD_INPUT: Final = 3
_NO_EXTRA: Final = 4
_BUG: Final = 70
_INTERRUPTED: Final = 130
_SIGNALLED: Final = 128  # a signal ends the process with the exit code 128 plus the signal's number
_REPORT_BUG: Final = (
    "This is a bug in Synovia. Please report it with the lines above and the output of 'synovia doctor'."
)
# module of each command, in the order of the help; "" for commands that synovia.jobs describes
_HOMES: Final = {
    "inspect": "show", "solve": "", "animate": "", "edit": "", "view": "view", "retarget": "", "live": "live",
    "convert": "", "render": "", "plot": "plot", "learn": "learn", "bench": "bench", "schema": "show", "doctor": "show",
}  # fmt: skip


# Names that other programs give to commands, with the commands of Synovia to suggest
_ALIKE: Final = {"info": "inspect", "show": "view", "play": "view", "picture": "render", "draw": "render"} | {
    "save": "convert",
    "export": "convert",
    "track": "animate",
    "follow": "animate",
    "cut": "edit",
    "trim": "edit",
    "loop": "edit",
    "mirror": "edit",
}


class Commands(click.Group):
    """A group that imports a command only when it is used.

    Args:
        homes: Module of each command, which defines the command under its name; "" for commands that ``synovia.jobs``
            describes. Other commands of ``synovia.jobs`` are listed after these.
        settings: Settings of ``click.Group``.
    """

    def __init__(self, homes: Mapping[str, str], **settings: Any) -> None:
        """Store the modules."""
        super().__init__(**settings)
        self._homes = homes

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        from synovia.jobs import verb_names

        return list(dict.fromkeys([*self._homes, *verb_names()]))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; None for an unknown name."""
        home = self._homes.get(cmd_name)
        if home:
            return getattr(import_module(home), cmd_name)
        from synovia.jobs import verb, verb_names

        if cmd_name not in verb_names():
            return None
        from synovia.cli.declare import command_of

        return command_of(cmd_name, verb(cmd_name))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the name of the command, the command, and the arguments of the command.

        Raises:
            click.UsageError: If there is no such command; the message suggests similar names.
        """
        known = self.list_commands(ctx)
        if args[0] not in known and not ctx.resilient_parsing:
            meant = _ALIKE.get(args[0])
            hint = f"Did you mean {meant!r}?" if meant in known else did_you_mean(args[0], known)
            raise click.UsageError(f"expected a command, got {args[0]!r}. {hint}", ctx)
        return super().resolve_command(ctx, args)


def _ending_flag(name: str, act: Callable[[click.Context], None], text: str) -> Decorator:
    """Return a flag of the application that performs an action and exits, instead of running a command.

    Args:
        name: The flag.
        act: The action.
        text: Help text.
    """

    def end(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
        if wanted:
            act(ctx)
            ctx.exit()

    return click.option(name, is_flag=True, expose_value=False, is_eager=True, callback=end, help=text)


@click.group(
    cls=Commands,
    homes={name: home and f"synovia.cli.commands.{home}" for name, home in _HOMES.items()},
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110, "show_default": True},
)
@click.version_option(package_name="synovia", message="%(package)s %(version)s", help="Print the version.")
@_ending_flag("--install-completion", completion.install, "Install completion for the shell that SHELL names.")
@_ending_flag("--show-completion", completion.show, "Print the completion script of this shell.")
def app() -> None:
    """Inverse kinematics for anything with joints.

    Exit codes: 0 all goals reached, 1 some goals missed, 2 wrong usage, 3 bad input, 4 an extra is not installed, 70 a
    bug, 130 interrupted, 143 ended by SIGTERM, 129 by SIGHUP.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: Arguments after the program's name; None for the arguments of this process.

    Returns:
        The exit code.
    """
    # Set before NumPy and SciPy load: on a busy machine, more OpenBLAS threads make fits of clips many times slower.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # names from files may contain characters that the terminal cannot print
            stream.reconfigure(errors="backslashreplace")
    if arguments is None:
        _end_like_ctrl_c()
    try:
        words = sys.argv[1:] if arguments is None else list(arguments)
        with suppress(NeedsCompilerError):
            return _run(words, alone=arguments is None)
        forget_kernels()
        return _run(words)  # repeats the command with compiled kernels
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        with suppress(OSError):  # raised if stderr cannot take the message
            error.show()
        return error.exit_code
    except SynoviaError as error:
        talk(f"synovia: {error}")
        return _NO_EXTRA if isinstance(error, MissingExtraError) else _BAD_INPUT
    except KeyboardInterrupt as stop:
        return stop.code if isinstance(stop, _Ended) else _INTERRUPTED
    except Exception:  # noqa: BLE001 - any other error is a bug
        import traceback

        talk(traceback.format_exc() + _REPORT_BUG)
        return _BUG


class _Ended(KeyboardInterrupt):
    """Exception for a signal that ends the process.

    Args:
        number: The signal.
    """

    def __init__(self, number: int) -> None:
        """Store the exit code."""
        super().__init__()
        self.code = _SIGNALLED + number


def _end_like_ctrl_c() -> None:
    """Handle SIGTERM and SIGHUP like Ctrl-C, so that child processes end and folders stay complete."""

    def end(number: int, _: object) -> None:
        for one in ends:
            signal.signal(one, signal.SIG_IGN)  # a second signal would interrupt the cleanup
        raise _Ended(number)

    ends = [one for name in ("SIGTERM", "SIGHUP") if (one := getattr(signal, name, None)) is not None]
    ends = [one for one in ends if signal.getsignal(one) is signal.SIG_DFL]  # others are ignored, as by nohup
    for one in ends:
        signal.signal(one, end)


def _run(arguments: list[str], *, alone: bool = False) -> int:
    """Run a command and return its exit code.

    Args:
        arguments: Arguments of the command.
        alone: Whether the process runs only this command, so that the command may choose the mode of its kernels.
    """
    answered = completion.answer_shell(app)
    if answered is not None:
        return answered
    if alone:
        require_compiled()
    with (
        warnings.catch_warnings(),
        CompileNotice(),
        app.make_context(completion.NAME, arguments, obj=alone) as ctx,
    ):
        warnings.showwarning = _talk_of_warning
        return app.invoke(ctx) or REACHED


def _talk_of_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Write a warning to stderr, without the line of code that caused it."""
    talk(f"synovia: {message}")
