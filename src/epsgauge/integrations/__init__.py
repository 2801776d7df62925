"""Where people already work: pytest, Lightning, Hugging Face, MLflow."""
