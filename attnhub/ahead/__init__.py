"""Compiling for TPUs that are not here: calls of real models, through the handle, by the TPU's own compiler."""
