"""Evidence -> bounds with their promises, one method per file."""
