"""Users' scripts run unmodified: a sandbox in which they change no file of the user."""
