"""Attacks on a timecached of its own, and what an honest client sees of them."""
