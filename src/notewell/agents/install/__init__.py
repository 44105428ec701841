"""Adds the MCP server to the settings of other programs."""

from notewell.agents.install.client_settings import Change, apply_change, plan_change
from notewell.agents.install.clients import CLIENTS, Client, Server, server_for

__all__ = ["CLIENTS", "Change", "Client", "Server", "apply_change", "plan_change", "server_for"]
