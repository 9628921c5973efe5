"""One file for each mechanism; a file here is registered by being here."""
