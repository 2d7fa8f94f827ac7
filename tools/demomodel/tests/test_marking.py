import json
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from marking.client import Endpoint
from marking.score import score, table

ANSWERS = {
    "What is 27 + 45?": ("27 + 45 = 72.", "stop"),
    "What is 2 + 2?": ("2 + 2 = 5.", "stop"),
    "What is an owl?": ("An owl is a bird.", "length"),
    "A story about a fox and a key, please.": ("Mira the fox had a key. Mira gave it to Otis.", "stop"),
    "A story about a hen and a bell, please.": ("Mira the hen had a bell. Otis and Finn came.", "stop"),
    "A story about an owl and a net, please.": ("Mira was an owl.", "stop"),
}
FACTS = {
    "sums": [{"question": "What is 27 + 45?", "accept": ["27 + 45 = 72."], "must": []}, {"question": "What is 2 + 2?", "accept": ["2 + 2 = 4."], "must": []}],
    "words": [{"question": "What is an owl?", "accept": ["An owl is a bird."], "must": []}],
    "stories, unseen pairs": [
        {"question": "A story about a fox and a key, please.", "accept": [], "must": ["fox", "key"]},
        {"question": "A story about a hen and a bell, please.", "accept": [], "must": ["hen", "bell"]},
        {"question": "A story about an owl and a net, please.", "accept": [], "must": ["owl", "net"]},
    ],
}


class Model(BaseHTTPRequestHandler):
    """Answers from the table above as an OpenAI endpoint would, and remembers what it was asked."""

    def do_GET(self):
        self._reply(200, {"object": "list", "data": [{"id": "tiny"}]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.headers.get("Authorization"), body))
        if body["model"] != "tiny":
            return self._reply(404, {"error": {"message": "no such model", "code": "model_not_found"}})
        text, reason = ANSWERS[body["messages"][-1]["content"]]
        self._reply(200, {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": reason}], "usage": {"completion_tokens": 9}})

    def _reply(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


class Marking(unittest.TestCase):
    def setUp(self):
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
        self.server.asked = []
        thread = threading.Thread(target=self.server.serve_forever)
        thread.start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(self.server.shutdown)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def test_counts_what_is_exactly_right(self):
        sections = score(Endpoint(self.url, "tiny"), FACTS, parallel=3)
        self.assertEqual([(s.name, s.right, s.of, s.kept) for s in sections], [("sums", 1, 2, None), ("words", 0, 1, None), ("stories, unseen pairs", 2, 3, 2)])
        self.assertEqual(sections[0].wrong, [{"question": "What is 2 + 2?", "got": "2 + 2 = 5.", "wanted": "2 + 2 = 4."}])
        self.assertIn("| sums | 1 / 2 | 50 % |", table(sections))
        self.assertIn("| stories, no third name told | 2 / 3 | 67 % |", table(sections))

    def test_asks_greedily_and_every_nth(self):
        score(Endpoint(self.url, "tiny", key="secret"), FACTS, every=2)
        self.assertEqual(len(self.server.asked), 1 + 1 + 2)
        for authorization, body in self.server.asked:
            self.assertEqual((authorization, body["temperature"], body["model"]), ("Bearer secret", 0, "tiny"))

    def test_an_error_of_the_endpoint_is_told(self):
        self.assertEqual(Endpoint(self.url, "tiny").models(), ["tiny"])
        with self.assertRaisesRegex(RuntimeError, "404.*model_not_found"):
            Endpoint(self.url, "other").ask("Hello!", 5)

    def test_a_missing_endpoint_is_named(self):
        with self.assertRaisesRegex(RuntimeError, "127.0.0.1.*cannot be reached"):
            Endpoint("http://127.0.0.1:9/v1", "tiny").models()
