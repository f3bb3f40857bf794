"""Which tables to return: rules that turn a distribution over subsets into a selection."""
