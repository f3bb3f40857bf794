"""What the question says about each table of a database."""
