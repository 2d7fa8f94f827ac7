"""Renders chats.json through each template here with Jinja itself, as Hugging
Face sets it up, into goldens.json. Run here: python3 goldens.py (needs jinja2)."""
import json
import pathlib

import jinja2
import jinja2.ext
import jinja2.sandbox

env = jinja2.sandbox.ImmutableSandboxedEnvironment(
    trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols])


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


env.filters["tojson"] = tojson
env.globals["raise_exception"] = raise_exception
chats = json.load(open("chats.json"))
out = {}
for path in sorted(pathlib.Path(".").glob("*.jinja")):
    template = env.from_string(path.read_text())
    out[path.stem] = []
    for chat in chats:
        values = {"tools": None, "documents": None, **chat, "bos_token": "<s>", "eos_token": "</s>"}
        try:
            out[path.stem].append({"text": template.render(**values)})
        except jinja2.exceptions.TemplateError as e:
            out[path.stem].append({"raised": e.message})
json.dump(out, open("goldens.json", "w"), ensure_ascii=False, indent=1)
