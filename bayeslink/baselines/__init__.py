"""What the model must beat: calibrators of given scores, cut-offs, and connectors of seeds."""
