"""Findings and results as text for people, or as data for programs."""
