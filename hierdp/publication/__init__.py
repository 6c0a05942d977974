"""What readers do with a release: open it, have it explained, copy it for Excel or SDMX."""
