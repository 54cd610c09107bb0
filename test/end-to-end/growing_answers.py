"""Reads and writes growing answers through public addresses only, with the standard library.

Writes ANSWERS answers as a bot, each to a visitor who reads its stream and may stop it. Prints what was
not exact, one line each, and at last the number of exact answers.
"""

import http.client
import json
import os
import random
import threading
import time
import urllib.parse
import uuid
from concurrent.futures import ThreadPoolExecutor

GATEWAYS = os.environ["GATEWAYS"].split(",")
ORIGIN, SITE_KEY, TOKEN = os.environ["ORIGIN"], os.environ["SITE_KEY"], os.environ["TOKEN"]
API = "/api/integrations/v1/widget"
RETRYABLE = (408, 425, 429, 500, 502, 503, 504)


def connect(timeout=6):
    url = urllib.parse.urlsplit(random.choice(GATEWAYS))
    return http.client.HTTPConnection(url.hostname, url.port, timeout=timeout)


def call(method, path, body, headers):
    """Repeats a call through any gateway until the service decides it."""
    payload = None if body is None else json.dumps(body)
    if payload is not None:
        headers = {**headers, "Content-Type": "application/json"}
    while True:
        connection = connect()
        try:
            connection.request(method, path, payload, headers)
            answer = connection.getresponse()
            content = json.loads(answer.read() or b"null")
            is_retryable = answer.status >= 400 and content.get("retryable", False)
            if answer.status not in RETRYABLE and not is_retryable:
                return answer.status, content
        except (OSError, http.client.HTTPException, ValueError):
            pass
        finally:
            connection.close()
        time.sleep(random.uniform(0.02, 0.2))


class Answer:
    """One answer, from the first part to its end, and what its visitor saw of it."""

    def __init__(self, number):
        self.name = f"answer-{number}-{uuid.uuid4().hex[:6]}"
        self.parts = [f"{self.name} says {index} 😀 " for index in range(random.randint(3, 15))]
        self.acknowledged, self.state, self.message_id = "", "growing", None
        self.shown, self.wrong, self.ended = "", [], threading.Event()
        self.texts = set()
        status, self.session = call(
            "POST",
            f"{API}/sessions",
            {"publicSiteKey": SITE_KEY, "clientInstanceId": str(uuid.uuid4())},
            {"Origin": ORIGIN, "X-Service-Widget-Version": "1.0", "Idempotency-Key": self.name},
        )
        if status != 201:
            raise RuntimeError(f"session: {status} {self.session}")

    def visitor_headers(self, **more):
        grant = self.session["accessGrant"]
        return {"Origin": ORIGIN, "X-Service-Widget-Version": "1.0", "Authorization": f"Bearer {grant}", **more}

    def show(self, text):
        self.shown = text
        self.texts.add(text)

    def history(self):
        status, page = call("GET", f"{API}/messages?afterSequence=0", None, self.visitor_headers())
        if status != 200:
            self.wrong.append(f"history: {status} {page}")
            return None
        return next((each for each in page["messages"] if each["author"]["kind"] == "bot"), None)

    def read(self):
        last_id, deadline = None, time.monotonic() + 120
        while not self.ended.is_set() and time.monotonic() < deadline:
            connection = connect()
            leaves_at = time.monotonic() + random.uniform(0.2, 4)
            try:
                resume = {} if last_id is None else {"Last-Event-ID": last_id}
                headers = self.visitor_headers(Accept="text/event-stream", **resume)
                connection.request("GET", f"{API}/events?afterSequence=0", headers=headers)
                answer = connection.getresponse()
                event = {}
                while answer.status == 200 and not self.ended.is_set() and time.monotonic() < leaves_at:
                    line = answer.readline().decode()
                    if line == "":
                        break
                    name, _, value = line.rstrip("\n").partition(": ")
                    if name:
                        event[name] = value
                        continue
                    if "data" in event:
                        self.handle(event["event"], json.loads(event["data"])["data"])
                        last_id = event.get("id") or last_id
                    event = {}
            except (OSError, http.client.HTTPException, ValueError):
                pass
            finally:
                connection.close()
            time.sleep(random.uniform(0.01, 0.1))
        if not self.ended.is_set():
            self.wrong.append("its end did not arrive")

    def handle(self, kind, data):
        message = data.get("message")
        if message and message["author"]["kind"] == "bot":
            self.show(message["body"])
        if kind == "message.completed":
            self.ended.set()
        if kind == "message.grew":
            if data["offset"] <= len(self.shown):
                self.show(self.shown[: data["offset"]] + data["text"])
            elif (found := self.history()) is not None:
                self.show(found["body"])

    def append(self, text, done=False):
        """Returns false if the answer has ended."""
        call_body = {
            "conversationId": self.session["conversationId"],
            "clientOperationId": self.name,
            "offset": len(self.acknowledged),
            "text": text,
            "done": done,
            "bot": {"displayName": "Robo"},
        }
        headers = {"Authorization": f"Bearer {TOKEN}"}
        status, result = call("POST", "/rpc/service.bot.v1.BotService/AppendBotMessage", call_body, headers)
        if status != 200:
            self.wrong.append(f"append: {status} {result}")
            return False
        self.message_id, self.state = result["messageId"], result["state"]
        if self.state not in ("growing", "completed"):
            return False
        self.acknowledged += text
        if result["length"] != len(self.acknowledged):
            self.wrong.append(f"length {result['length']} in place of {len(self.acknowledged)}")
        return True

    def stop(self):
        path = f"{API}/messages/{self.message_id}/stop"
        stops = [call("POST", path, None, self.visitor_headers(**{"Idempotency-Key": "stop"})) for _ in range(2)]
        if any(status != 202 for status, _ in stops) or stops[0] != stops[1]:
            self.wrong.append(f"stops: {stops}")
        return stops[0][1].get("state")

    def run(self):
        reader = threading.Thread(target=self.read)
        reader.start()
        stops_at = random.choice([-1, -1, -1, 1, 2])
        for index, part in enumerate(self.parts):
            stopped = self.stop() if index == stops_at else None
            if not self.append(part, done=index == len(self.parts) - 1):
                break
            if stopped == "stopped":
                self.wrong.append("it grew after its stop")
            time.sleep(random.uniform(0, 0.1))
        reader.join()
        final, planned = self.history(), "".join(self.parts)
        body = final["body"] if final else ""
        for is_right, what in [
            (body.startswith(self.acknowledged), f"acknowledged {self.acknowledged}"),
            (planned.startswith(body), f"planned {planned}"),
            (self.state != "completed" or body == planned, "completed before its end"),
            (self.shown == body, f"shown at last {self.shown}"),
            (all(body.startswith(text) for text in self.texts), "another text was shown"),
            (final is not None and "growing" not in final, "it grows for ever"),
        ]:
            if not is_right:
                self.wrong.append(what)
        return [f"{self.name}: {body!r}, and {what}" for what in self.wrong]


def main():
    count = int(os.environ["ANSWERS"])
    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda number: Answer(number).run(), range(count)))
    for line in sum(results, []):
        print(line)
    print(f"{sum(not each for each in results)} of {count} answers are exact")


main()
