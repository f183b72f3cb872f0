"""The samples of the documents run, or a list says why not; what they name exists."""
