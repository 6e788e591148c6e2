"""Applying a plan: each write once, whatever happens on the way."""
