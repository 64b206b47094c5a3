"""A plugin whose import fails, as with a library that was built for another machine."""

raise ImportError("libacme.so.7: cannot open shared object file")
