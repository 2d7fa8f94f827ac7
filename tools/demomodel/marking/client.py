"""One question to an OpenAI-compatible endpoint."""

import json
import urllib.error
import urllib.request
from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    """finished tells whether the model ended its turn by itself (finish_reason "stop")."""

    text: str
    finished: bool
    tokens: int


@dataclass(frozen=True)
class Endpoint:
    """url ends with /v1; key is sent as a bearer token where one is needed."""

    url: str
    model: str
    key: str = ""
    seconds: float = 120.0

    def ask(self, question, max_tokens):
        """The greedy answer to one user message."""
        body = {"model": self.model, "messages": [{"role": "user", "content": question}], "temperature": 0, "max_tokens": max_tokens}
        reply = self._call("/chat/completions", body)
        choice = reply["choices"][0]
        return Answer(choice["message"]["content"] or "", choice["finish_reason"] == "stop", reply.get("usage", {}).get("completion_tokens", 0))

    def models(self):
        """The ids of the served models."""
        return [model["id"] for model in self._call("/models")["data"]]

    def _call(self, path, body=None):
        request = urllib.request.Request(self.url.rstrip("/") + path, json.dumps(body).encode() if body else None, {"Content-Type": "application/json"})
        if self.key:
            request.add_header("Authorization", f"Bearer {self.key}")
        try:
            with urllib.request.urlopen(request, timeout=self.seconds) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            detail = error.read(2000).decode("utf-8", "replace")
            raise RuntimeError(f"{request.full_url} answered {error.code}: {detail}") from error
        except urllib.error.URLError as error:
            raise RuntimeError(f"{request.full_url} cannot be reached: {error.reason}") from error
