"""The real library: bibliographic records and files whose licences allow redistribution, and the code to build and load it.

``ATTRIBUTION.md`` names every source. ``seed.py`` loads the data files of this folder.
"""
