"""Tests of the tool chain: python3 -m unittest, from tools/demomodel.  Those of learn/ are skipped where torch is missing."""
