"""The generated half of the demo model: every text it learns from, and the exam it is marked with."""
