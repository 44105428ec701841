"""The default store: one SQLite file, through apsw."""
