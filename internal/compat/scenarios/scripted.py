"""A chat model that plays fixed tool calls, so that an agent needs no network; all else is as it comes."""

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult


class Script(BaseChatModel):
    """Says, one after the other, what stands in calls (name, tool, arguments), whatever it is told."""

    calls: list
    end: str = "Done."

    @property
    def _llm_type(self):
        return "script"

    def bind_tools(self, tools, **_):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **_):
        turn = sum(isinstance(m, ToolMessage) for m in messages)
        if turn == len(self.calls):
            message = AIMessage(self.end)
        else:
            name, tool, arguments = self.calls[turn]
            message = AIMessage("", tool_calls=[{"name": tool, "args": arguments, "id": name}])
        return ChatResult(generations=[ChatGeneration(message=message)])


def play(agent, task):
    """Lets an agent of a Script work, and returns what each call came to, by its name."""
    said = agent.invoke({"messages": [("user", task)]}, config={"recursion_limit": 100})["messages"]
    return said[-1].text, {m.tool_call_id: m for m in said if isinstance(m, ToolMessage)}
