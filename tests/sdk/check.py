#!/usr/bin/env python3
"""Whether the vendors' own libraries take what the tests' server sends, so that the server is true, and
whether they read agentd's requests: with images, with a deferred tool list, and with a schema for the
answer.

Installs openai, anthropic and google-genai from the package index into a directory of its own, asks
the server of the tests with each, and checks requests of each interface against the
library's own types. Needs cargo and, the first time, the package index:

    python3 tests/sdk/check.py            # libraries are kept in target/sdk
    python3 tests/sdk/check.py DIRECTORY  # or there
"""

import json
import os
import pathlib
import subprocess
import sys
import venv

LIBRARIES = ["openai", "anthropic", "google-genai"]
ROOT = pathlib.Path(__file__).resolve().parents[2]


def install(place):
    """Makes the environment; says which library could not be had."""
    python = place / "bin" / "python"
    if not python.exists():
        venv.create(place, with_pip=True)
    absent = []
    for library in LIBRARIES:
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", library]
        ran = subprocess.run(pip, capture_output=True, text=True)
        if ran.returncode != 0:
            last = (ran.stderr.strip().splitlines() or ["no reason given"])[-1]
            absent.append(f"{library}: {last}")
    return python, absent


def same(what, got, wanted):
    if got != wanted:
        raise AssertionError(f"{what}: {got!r}, not {wanted!r}")


def anthropic_check(url):
    import anthropic

    # The version of the interface that is spoken here, whatever is the library's newest.
    version = {"anthropic-version": "2023-06-01"}
    client = anthropic.Anthropic(api_key="k", base_url=url, max_retries=0, default_headers=version)
    request = dict(model="m", max_tokens=100, messages=[{"role": "user", "content": "hi"}])

    def ask():
        with client.messages.stream(**request) as stream:
            return stream.get_final_message()

    first = ask()
    thought, words, call = first.content
    same("thinking", (thought.thinking, thought.signature), ("Hm.", "c2ln"))
    same("words", words.text, "I look: é")
    same("call", (call.id, call.name, call.input), ("call_1", "read", {"path": "a b"}))
    same("reason", first.stop_reason, "tool_use")
    same("usage", (first.usage.input_tokens, first.usage.output_tokens), (10, 25))
    second = ask()
    same("words", (second.content[0].text, second.stop_reason), ("done", "end_turn"))
    same("cut", ask().stop_reason, "max_tokens")
    same("refusal", ask().stop_reason, "refusal")
    try:
        ask()
    except anthropic.RateLimitError as error:
        same("error", error.body["error"]["type"], "rate_limit_error")
    else:
        raise AssertionError("429 went by")
    return anthropic.__version__


def responses_check(url):
    import openai

    client = openai.OpenAI(api_key="k", base_url=url, max_retries=0)
    content = [{"type": "input_text", "text": "hi"}]
    message = {"type": "message", "role": "user", "content": content}
    request = dict(model="m", input=[message], store=False, max_output_tokens=100)

    def ask():
        # Through the library's own joining of events, which refuses what does not fit together.
        last = None
        with client.responses.stream(**request) as stream:
            for event in stream:
                last = event
        return last.response

    first = ask()
    thought, words, call = first.output
    same("reasoning", (thought.summary[0].text, thought.encrypted_content), ("Hm.", "c2ln"))
    same("words", first.output_text, "I look: é")
    same("call", (call.call_id, call.name, call.arguments), ("call_1", "read", '{"path":"a b"}'))
    same("usage", (first.usage.input_tokens, first.usage.output_tokens), (20, 25))
    second = ask()
    same("words", (second.output_text, second.status), ("done", "completed"))
    same("cut", ask().incomplete_details.reason, "max_output_tokens")
    same("refusal", ask().incomplete_details.reason, "content_filter")
    try:
        ask()
    except openai.RateLimitError as error:
        same("error", error.code, "rate_limit_exceeded")
    else:
        raise AssertionError("429 went by")
    return openai.__version__


def chat_check(url):
    import openai

    client = openai.OpenAI(api_key="k", base_url=url, max_retries=0)
    request = dict(model="m", messages=[{"role": "user", "content": "hi"}], stream=True)
    request |= dict(stream_options={"include_usage": True}, max_completion_tokens=100)

    def ask():
        words, calls, reason, usage = "", {}, None, None
        for chunk in client.chat.completions.create(**request):
            usage = chunk.usage or usage
            for choice in chunk.choices:
                words += choice.delta.content or ""
                reason = choice.finish_reason or reason
                for call in choice.delta.tool_calls or []:
                    known = calls.setdefault(call.index, [None, None, ""])
                    known[0] = call.id or known[0]
                    known[1] = call.function.name or known[1]
                    known[2] += call.function.arguments or ""
        return words, list(calls.values()), reason, usage

    words, calls, reason, usage = ask()
    same("words", words, "I look: é")
    same("call", calls, [["call_1", "read", '{"path":"a b"}']])
    same("reason", reason, "tool_calls")
    same("usage", (usage.prompt_tokens, usage.completion_tokens), (20, 25))
    same("words", ask()[::2], ("done", "stop"))
    same("cut", ask()[2], "length")
    same("refusal", ask()[2], "content_filter")
    try:
        ask()
    except openai.RateLimitError as error:
        same("error", error.code, "rate_limit_exceeded")
    else:
        raise AssertionError("429 went by")
    return openai.__version__


def gemini_check(url):
    from google import genai
    from google.genai import errors, types

    client = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=url, api_version="v1beta"))

    def ask():
        parts, reason, usage = [], None, None
        for chunk in client.models.generate_content_stream(model="m", contents="hi"):
            usage = chunk.usage_metadata or usage
            for candidate in chunk.candidates or []:
                parts += (candidate.content and candidate.content.parts) or []
                reason = candidate.finish_reason or reason
        return parts, reason, usage

    parts, reason, usage = ask()
    same("thought", [part.text for part in parts if part.thought], ["Hm."])
    words = "".join(part.text for part in parts if part.text and not part.thought)
    same("words", words, "I look: é")
    call = next(part for part in parts if part.function_call)
    same("call", (call.function_call.name, call.function_call.args), ("read", {"path": "a b"}))
    same("signature", call.thought_signature, b"sig")
    same("reason", reason, types.FinishReason.STOP)
    same("usage", (usage.prompt_token_count, usage.candidates_token_count), (20, 25))
    same("words", "".join(part.text for part in ask()[0]), "done")
    same("cut", ask()[1], types.FinishReason.MAX_TOKENS)
    same("refusal", ask()[1], types.FinishReason.SAFETY)
    try:
        ask()
    except errors.ClientError as error:
        same("error", (error.code, error.status), (429, "RESOURCE_EXHAUSTED"))
    else:
        raise AssertionError("429 went by")
    return genai.__version__


def reads(params, body):
    """Every part of the body is a parameter that the library's types know."""
    import pydantic

    adapter = pydantic.TypeAdapter(params)
    same("request", whole(adapter.validate_python(body)), body)


def whole(value):
    """The value with its lists, which are validated while they are read."""
    if isinstance(value, dict):
        return {name: whole(part) for name, part in value.items()}
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        return value
    return [whole(part) for part in value]


def anthropic_reads(body):
    from anthropic.types import message_create_params as params

    reads(params.MessageCreateParamsStreaming, body)


def responses_reads(body):
    from openai.types.responses import response_create_params as params

    reads(params.ResponseCreateParamsStreaming, body)


def chat_reads(body):
    from openai.types.chat import completion_create_params as params

    reads(params.CompletionCreateParamsStreaming, body)


def gemini_reads(body):
    from google.genai import types

    # These types refuse unknown fields themselves.
    for content in body.pop("contents"):
        types.Content.model_validate(content)
    for tool in body.pop("tools", []):
        types.Tool.model_validate(tool)
    if system := body.pop("systemInstruction", None):
        types.Content.model_validate(system)
    types.GenerationConfig.model_validate(body.pop("generationConfig"))
    same("request", body, {})


# The answers of an interface, and requests of agentd.
CHECKS = {
    "anthropic": (anthropic_check, anthropic_reads),
    "openai": (responses_check, responses_reads),
    "openai-chat": (chat_check, chat_reads),
    "gemini": (gemini_check, gemini_reads),
}


def example(name):
    return ["cargo", "run", "--quiet", "--locked", "-p", "provider", "--example", name]


def check():
    """Inside the environment: each interface by its vendor's library."""
    requests = subprocess.run(example("sdk_requests"), cwd=ROOT, stdout=subprocess.PIPE, check=True)
    requests = json.loads(requests.stdout)
    server = subprocess.Popen(example("fault_server"), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    failed = 0
    try:
        urls = json.loads(server.stdout.readline())
        for name, (asks, reads) in CHECKS.items():
            try:
                version = asks(urls[name])
                for body in requests[name].values():
                    reads(body)
                known = ", ".join(requests[name])
                print(f"{name}: taken by its vendor's library, version {version}, which reads agentd's {known}")
            except Exception as error:
                failed += 1
                print(f"{name}: NOT taken: {type(error).__name__}: {error}")
    finally:
        server.stdin.close()
        server.wait()
    print(f"interfaces {len(CHECKS)}, failed {failed}")
    return 1 if failed else 0


def main():
    if os.environ.get("AGENTD_SDK_CHECK") == "inside":
        return check()
    named = sys.argv[1] if len(sys.argv) > 1 else ROOT / "target" / "sdk"
    python, absent = install(pathlib.Path(named))
    if absent:
        print("absent, so nothing was checked:", *absent, sep="\n  ")
        return 1
    inside = {**os.environ, "AGENTD_SDK_CHECK": "inside"}
    return subprocess.run([python, __file__], env=inside).returncode


if __name__ == "__main__":
    sys.exit(main())
