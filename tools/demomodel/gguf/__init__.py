"""A small writer and reader of GGUF version 3: just what the demo model needs, standard library only.

Layout (little endian): magic, version, number of tensors, number of metadata pairs; the pairs; one description per tensor; padding to
ALIGNMENT; the tensors' bytes, each padded to ALIGNMENT.  Source: the GGUF specification in the ggml repository (docs/gguf.md).
"""
