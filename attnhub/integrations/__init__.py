"""Where attnhub touches a framework: one file each, which imports it inside functions."""
