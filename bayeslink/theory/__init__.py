"""The propositions, as functions that check them for given parameters (MODEL.md sections 6 and 7)."""
