"""The shapes of kernels that mechanisms share: one row over all outputs, or sets of words."""
