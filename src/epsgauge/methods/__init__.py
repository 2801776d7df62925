"""Evidence -> bounds with their promises, one method a file."""
