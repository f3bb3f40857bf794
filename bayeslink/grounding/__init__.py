"""What a language model is shown of the selected tables."""
