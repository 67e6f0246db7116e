#!/usr/bin/env python3
"""Whether the Claude Agent SDK for Python drives `agentd-claude`: permissions, partial messages, interrupt, hooks.

    python3 tests/sdk/agent_sdk.py DIRECTORY AGENTD_CLAUDE PROJECT

Downloads a fixed version of the SDK from the package index into the directory. The environment has the key and the address
of the model's server, which answers with one call of `bash`, then with words each time.
"""

import asyncio
import pathlib
import subprocess
import sys
import venv

LIBRARY = "claude-agent-sdk==0.2.189"


def main():
    place = pathlib.Path(sys.argv[1])
    python = place / "env/bin/python"
    if not python.exists():
        venv.create(place / "env", with_pip=True)
        pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", LIBRARY], check=True)
    if pathlib.Path(sys.prefix).resolve() != (place / "env").resolve():
        return subprocess.run([python, __file__, *sys.argv[1:]]).returncode
    return asyncio.run(drive(*sys.argv[2:]))


async def drive(cli, project):
    import claude_agent_sdk as sdk

    asked, seen = [], []

    async def may(tool, given, context):
        asked.append((tool, given, context.tool_use_id))
        return sdk.PermissionResultAllow()

    async def saw(given, tool_use_id, context):
        seen.append((given["tool_name"], tool_use_id))
        return {}

    observing = {"PostToolUse": [sdk.HookMatcher(matcher="Bash", hooks=[saw])]}
    options = sdk.ClaudeAgentOptions(
        cli_path=cli, cwd=project, can_use_tool=may, include_partial_messages=True, hooks=observing
    )
    async with sdk.ClaudeSDKClient(options) as client:
        await client.query("go")
        first = [message async for message in client.receive_response()]
        assert asked == [("Bash", {"command": "echo x >>ran"}, "toolu_1")], asked
        assert seen == [("Bash", "toolu_1")], seen
        kinds = {type(message).__name__ for message in first}
        for kind in ["SystemMessage", "StreamEvent", "AssistantMessage", "UserMessage", "ResultMessage"]:
            assert kind in kinds, (kind, kinds)
        assert first[-1].result == "All done." and not first[-1].is_error, first[-1]
        await client.set_permission_mode("acceptEdits")
        await client.interrupt()
        usage = await client.get_context_usage()
        assert usage["totalTokens"] > 100, usage
        await client.query("more")
        second = [message async for message in client.receive_response()]
        assert second[-1].session_id == first[-1].session_id, second[-1]
    resumed = sdk.ClaudeAgentOptions(cli_path=cli, cwd=project, resume=first[-1].session_id)
    last = [message async for message in sdk.query(prompt="again", options=resumed)][-1]
    assert last.result == "All done.", last

    async def judge(given, tool_use_id, context):
        return {}

    judging = {"PreToolUse": [sdk.HookMatcher(hooks=[judge])]}
    try:
        async with sdk.ClaudeSDKClient(sdk.ClaudeAgentOptions(cli_path=cli, cwd=project, hooks=judging)):
            raise AssertionError("a hook that judges was left out in silence")
    except Exception as error:
        assert "PreToolUse" in str(error), error
    print(f"Done {LIBRARY}: permission, partial messages, hook, interrupt, modes, usage, resume, 1 refusal")
    return 0


if __name__ == "__main__":
    sys.exit(main())
