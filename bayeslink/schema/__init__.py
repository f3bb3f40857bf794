"""What can be selected: schema graphs, corpora, live catalogues and gold tables."""
