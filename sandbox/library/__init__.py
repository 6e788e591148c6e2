"""The real library: bibliographic records and files that their licences let us ship, and the code that makes and loads it.

``ATTRIBUTION.md`` names every source. ``build.py`` makes the data files of this folder, ``seed.py`` loads them.
"""
