"""A client of the gateway in Python, without any package: a call, a stream, and what to do with a denial.

    ratelimit mock &
    ratelimit serve &            # with base_url: http://127.0.0.1:8090 for openai
    python3 examples/clients/client.py http://127.0.0.1:8080/openai/v1

With OpenAI's package it is OpenAI(base_url="http://127.0.0.1:8080/openai/v1"), which waits and tries again by itself.
"""

import json
import os
import sys
import time
import urllib.error
import urllib.request

BASE = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080/openai/v1"
MOST_SECONDS = 90  # the longest wait for a limit


def ask(body):
    """Makes a call, and waits as long as the gateway says when a limit denies it."""
    request = urllib.request.Request(
        BASE + "/chat/completions",
        data=json.dumps(body).encode(),
        headers={
            "Authorization": "Bearer " + os.environ.get("OPENAI_API_KEY", "none"),
            "Content-Type": "application/json",
            "X-Project-ID": "search",
        },
    )
    while True:
        try:
            return urllib.request.urlopen(request)
        except urllib.error.HTTPError as denial:
            problem = json.load(denial)["error"]["message"]
            wait = float(denial.headers.get("Retry-After", "0"))
            if denial.status != 429 or denial.headers.get("X-Should-Retry") == "false" or wait > MOST_SECONDS:
                raise SystemExit(f"{denial.status}: {problem}")  # never, or not today
            print(f"denied: {problem}")
            time.sleep(wait)


def main():
    body = {"model": "gpt-4o", "max_tokens": 50, "messages": [{"role": "user", "content": "hello"}]}
    answer = json.load(ask(body))
    print("answer:", answer["choices"][0]["message"]["content"])
    print("tokens:", answer["usage"]["total_tokens"])

    words = []
    for line in ask({**body, "stream": True}):
        text = line.decode().strip()
        if text.startswith("data: {"):
            for choice in json.loads(text[len("data: "):])["choices"]:
                words.append(choice["delta"].get("content") or "")
    print("stream:", "".join(words))


if __name__ == "__main__":
    main()
