"""Runs directories of cases: inputs/ and doctor/."""
