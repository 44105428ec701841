"""Configuration: defaults, settings files, environment and flags come in; one frozen, checked `Settings` goes out."""

from __future__ import annotations

from recollect.settings.load import RESERVED_VARIABLES, Resolved, check_settings, load_settings
from recollect.settings.masking import public_value, to_public_dict
from recollect.settings.model import (
    GROUPS,
    OPTIONS,
    PROVIDERS,
    BatchSettings,
    CacheSettings,
    ChunkingSettings,
    DecaySettings,
    DiversitySettings,
    ExperimentalSettings,
    HybridSettings,
    LocalSettings,
    QuerySettings,
    RemoteSettings,
    RerankSettings,
    SessionSyncSettings,
    Settings,
    StoreSettings,
    SyncSettings,
    VectorSettings,
    flatten,
)
from recollect.settings.option import Option
from recollect.settings.places import (
    STATE_FOLDER,
    WORKSPACE_FILE,
    checked_agent,
    default_user_file,
    state_folder,
    user_file_of,
)
from recollect.settings.values import variable_name

__all__ = [
    "GROUPS",
    "OPTIONS",
    "PROVIDERS",
    "RESERVED_VARIABLES",
    "STATE_FOLDER",
    "WORKSPACE_FILE",
    "BatchSettings",
    "CacheSettings",
    "ChunkingSettings",
    "DecaySettings",
    "DiversitySettings",
    "ExperimentalSettings",
    "HybridSettings",
    "LocalSettings",
    "Option",
    "QuerySettings",
    "RemoteSettings",
    "RerankSettings",
    "Resolved",
    "SessionSyncSettings",
    "Settings",
    "StoreSettings",
    "SyncSettings",
    "VectorSettings",
    "check_settings",
    "checked_agent",
    "default_user_file",
    "flatten",
    "load_settings",
    "public_value",
    "state_folder",
    "to_public_dict",
    "user_file_of",
    "variable_name",
]
