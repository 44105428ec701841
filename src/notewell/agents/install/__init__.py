"""Putting the MCP server into other programs' settings: a program's name in, its changed settings file out."""

from notewell.agents.install.clients import CLIENTS, Client, Server, server_for
from notewell.agents.install.install import Change, apply_change, plan_install, plan_uninstall

__all__ = [
    "CLIENTS",
    "Change",
    "Client",
    "Server",
    "apply_change",
    "plan_install",
    "plan_uninstall",
    "server_for",
]
