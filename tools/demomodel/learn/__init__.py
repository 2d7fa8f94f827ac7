"""Tokenizer, network and training.  Needs Debian's python3-torch and python3-sentencepiece; nothing here runs in CI."""
