"""A bot that writes its answers while visitors read them, with the standard library (docs/bots.md).

CORE_URL=http://localhost:8090 SERVICE_TOKEN=$(cat .data/bot.token) python3 docs/examples/bot.py
"""

import json
import os
import re
import time
import urllib.error
import urllib.request

CORE_URL = os.environ.get("CORE_URL", "http://localhost:8090")
TOKEN = os.environ["SERVICE_TOKEN"]
CURSOR_FILE = os.environ.get("CURSOR_FILE", "bot.cursor")
BOT = {"displayName": "Robo"}


class Refused(Exception):
    """The service refused the call for good: BotStopped, or NotFound after an erasure."""


def call(method, request):
    """Calls a method. Repeats the call while the service cannot be reached or is too busy."""
    headers = {"content-type": "application/json", "authorization": f"Bearer {TOKEN}"}
    body = json.dumps(request).encode()
    while True:
        try:
            sent = urllib.request.Request(f"{CORE_URL}/service.{method}", body, headers)
            with urllib.request.urlopen(sent, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code < 500 and error.code not in (408, 429):
                raise Refused(error.read().decode()) from error
        except (OSError, ValueError):
            pass
        time.sleep(0.5)


def stream(message, parts, quick_replies):
    """Sends a text while it is written. After a kill, the same text goes on where it was accepted."""

    def append(offset, text="", **more):
        answer = call("bot.v1.BotService/AppendBotMessage", {**message, "offset": offset, "text": text, **more})
        return answer.get("length", 0), answer["state"]

    length, state = append(0)
    known = length
    for part in parts:
        if state != "growing":
            return
        text, known = part[known:], max(0, known - len(part))
        if text:
            length, state = append(length, text)
    append(length, done=True, quickReplies=quick_replies)


def written(text):
    """Stands for the client of a model: yields a text in parts."""
    for part in re.findall(r"\s*\S+\s*", text[:4000]):
        time.sleep(0.03)
        yield part


def answer(event):
    message = event["message"]["message"]
    sent = {"conversationId": event["conversationId"], "clientOperationId": f"answer-{message['messageId']}", "bot": BOT}
    stream(sent, written(f"You wrote: {message['body']}"), ["A person, please"])


def save(cursor):
    with open(f"{CURSOR_FILE}.new", "w", encoding="utf-8") as file:
        file.write(cursor)
    os.replace(f"{CURSOR_FILE}.new", CURSOR_FILE)


def main():
    cursor = open(CURSOR_FILE, encoding="utf-8").read() if os.path.exists(CURSOR_FILE) else ""
    while True:
        request = {"cursor": cursor, "types": ["message.visitor"], "waitSeconds": 20}
        page = call("events.v1.EventsService/ListEvents", request)
        for event in page.get("events", []):
            try:
                answer(event)
            except Refused as error:
                print(f"not answered: {error}")
        cursor = page.get("cursor", cursor)
        save(cursor)


if __name__ == "__main__":
    main()
