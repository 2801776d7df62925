"""Plan (TOML), store (SQLite), executors, resume; knows no verdict."""
