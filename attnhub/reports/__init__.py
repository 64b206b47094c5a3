"""What `attnhub check` found, as plain data, and the forms that it is written in."""
