"""Values as YAML that every reader, of YAML 1.1 too, reads back as they were: NO stays Norway. Used by `cli/`."""

import io

from ruamel.yaml import YAML
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.representer import SafeRepresenter

from controller.model.scalars import needs_quotes


class _Representer(SafeRepresenter):
    def ignore_aliases(self, data: object) -> bool:
        del data
        return True


def _text(representer: SafeRepresenter, text: str) -> ScalarNode:
    node: ScalarNode = representer.represent_scalar("tag:yaml.org,2002:str", text, style=_style(text))
    return node


def _style(text: str) -> str | None:
    """Double quotes wherever plain text or a block could be read as something else."""
    lines = text.split("\n")
    if needs_quotes(text) or not all(line.isprintable() for line in lines) or (len(lines) > 1 and text[0].isspace()):
        return '"'
    return "|" if len(lines) > 1 else None


_Representer.add_representer(str, _text)


def dump_yaml(value: object) -> str:
    """One YAML document of dicts, lists and scalars, keys in the order given, no aliases."""
    yaml = YAML(typ="safe", pure=True)
    yaml.Representer = _Representer
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.allow_unicode = True
    yaml.width = 4096
    out = io.StringIO()
    yaml.dump(value, out)
    return out.getvalue()
