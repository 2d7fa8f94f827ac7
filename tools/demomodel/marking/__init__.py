"""Marks a served model with the exam, over the OpenAI API: HECATE's own endpoint (hecate up) or any other.  Standard library only."""
