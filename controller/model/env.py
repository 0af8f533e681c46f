"""The environment of an instance, gathered from the manifest and what it refers to, just before renting."""

from collections.abc import Callable, Mapping

from controller.model.faults import Misconfigured
from controller.model.reasons import Reason
from controller.model.workload import InstanceSpec, env_problems


def resolve_env(instance: InstanceSpec, environ: Mapping[str, str], read_text: Callable[[str], str]) -> dict[str, str]:
    """Variables for the instance: envFrom in its order, then env, later ones winning.

    `environ` is the controller's own environment; `read_text` gives the text of a file by its path as written in the
    manifest, raising OSError or UnicodeDecodeError. Raises Misconfigured naming all that is missing, values never.
    """
    env: dict[str, str] = {}
    wrong: list[str] = []
    for source in instance.env_from:
        try:
            if source.variable is not None:
                env[source.variable] = environ[source.variable]
            elif source.file is not None:
                env |= _lines(source.file, read_text(source.file))
            elif source.secret_ref is not None:
                wrong.append(f"secret {source.secret_ref.name} is to be had only in a cluster")
        except KeyError:
            wrong.append(f"variable {source.variable} is not set")
        except OSError as error:
            wrong.append(f"file {source.file} cannot be read: {error.strerror or type(error).__name__}")
        except ValueError as error:
            text = f"file {source.file} is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
            wrong.append(text)  # of a decoding error not its own text, which quotes the file
    env |= {name: value.get_secret_value() for name, value in instance.env.items()}
    wrong += unfit(env)
    if wrong:
        raise Misconfigured(Reason.ENV_UNRESOLVED, f"spec.instance.envFrom: {'; '.join(wrong)}")
    return env


def unfit(env: dict[str, str]) -> list[str]:
    """What vast.ai would not take of a whole environment; names are told, values never."""
    return [" ".join(["variable", *map(str, path), text]) for path, text in env_problems(env)]


def _lines(path: str, text: str) -> dict[str, str]:
    """NAME=value lines, the value as it stands. Raises ValueError telling the line's number, not what is in it."""
    env: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not equals:
            raise ValueError(f"file {path} line {number} is not NAME=value")
        env[name.strip()] = value
    return env
