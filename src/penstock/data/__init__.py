"""Raw files to arrival traces and statistics; synthetic generators."""
