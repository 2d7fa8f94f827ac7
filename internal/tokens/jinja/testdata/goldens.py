"""Computes what Jinja itself renders for cases.json, in the environment that
Hugging Face gives chat templates. Run here: python3 goldens.py (needs jinja2)."""
import json
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

cases = json.load(open("cases.json"))
out = []
for template in cases["templates"]:
    try:
        want = {"output": env.from_string(template).render(**cases["vars"])}
    except Exception as e:
        want = {"error": type(e).__name__}
    out.append({"template": template, **want})
json.dump(out, open("goldens.json", "w"), ensure_ascii=False, indent=1)
print(len(out), "cases,", sum("error" in c for c in out), "with an error")
