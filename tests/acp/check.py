#!/usr/bin/env python3
"""Whether the Python library of the Agent Client Protocol drives `agentd acp`: its own models read each message.

    python3 tests/acp/check.py DIRECTORY AGENTD PROJECT

Downloads a fixed version of the library from the package index into the directory. The environment has the key and the
address of the model's server, which answers with one call of `bash` and then the words `All done.`
"""

import asyncio
import os
import pathlib
import subprocess
import sys
import venv

LIBRARY = "agent-client-protocol==0.12.1"


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


async def drive(agentd, project):
    import acp
    from acp import schema

    seen, texts, asked = [], [], []

    class Editor(acp.Client):
        async def session_update(self, session_id, update, **_):
            seen.append(type(update).__name__)
            if isinstance(update, schema.AgentMessageChunk):
                texts.append(update.content.text)

        async def request_permission(self, options, session_id, tool_call, **_):
            asked.append(tool_call.title)
            chosen = next(option for option in options if option.kind == "allow_once")
            outcome = schema.AllowedOutcome(outcome="selected", option_id=chosen.option_id)
            return schema.RequestPermissionResponse(outcome=outcome)

    async with acp.spawn_agent_process(Editor(), agentd, "acp", env=dict(os.environ), cwd=project) as (agent, _):
        start = await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        assert start.agent_info.name == "agentd", start
        session = await agent.new_session(cwd=project, mcp_servers=[])
        assert session.modes.current_mode_id == "ask", session
        assert {option.id for option in session.config_options} == {"mode", "model", "network"}
        words = [schema.TextContentBlock(type="text", text="go")]
        done = await agent.prompt(session_id=session.session_id, prompt=words)
        assert done.stop_reason == "end_turn", done
        assert "".join(texts) == "All done.", texts
        assert asked == ["echo x >>ran"], asked
        for kind in ["ToolCallStart", "ToolCallProgress", "AgentMessageChunk"]:
            assert kind in seen, (kind, seen)
        await agent.set_session_mode(session_id=session.session_id, mode_id="plan")
        listed = await agent.list_sessions(cwd=project)
        assert [one.session_id for one in listed.sessions] == [session.session_id], listed
        await agent.close_session(session_id=session.session_id)
        seen.clear()
        texts.clear()
        await agent.load_session(session_id=session.session_id, cwd=project, mcp_servers=[])
        assert seen[0] == "UserMessageChunk" and "".join(texts) == "All done.", (seen, texts)
        try:
            await agent.load_session(session_id="nothing", cwd=project, mcp_servers=[])
            raise AssertionError("a session that is not there was loaded")
        except acp.RequestError as error:
            assert error.code == -32002, error
    print(f"Done {LIBRARY}: {len(set(seen))} kinds of updates, 1 question, replay")
    return 0


if __name__ == "__main__":
    sys.exit(main())
