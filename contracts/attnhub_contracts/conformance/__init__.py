"""The meaning of the contract, executable."""
