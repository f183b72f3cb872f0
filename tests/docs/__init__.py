"""What README.md and SECURITY.md show is run, or is on a list that says why not."""
